/*
 * Lets UndefinedBehaviorSanitizer write its reports where UBSAN_OPTIONS says.
 *
 * Beside AddressSanitizer its runtime calls __sanitizer_set_report_path() and
 * gets AddressSanitizer's function of that name, so its own reports go to the
 * standard error, which tests read or throw away. Here it gets its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

typedef void set_report_path(const char *);

__attribute__((constructor)) static void set_path(void) {
    const char *path = getenv("FTNUMPY_UBSAN_LOG");
    void *runtime = dlopen("libubsan.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (path == NULL || runtime == NULL) {
        return;
    }
    set_report_path *set = (set_report_path *)dlsym(runtime, "__sanitizer_set_report_path");
    if (set != NULL) {
        set(path);
    }
}
