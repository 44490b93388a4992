/* What OpenSSL and ncurses look for lies where the system that they were built on has it.  Loaded with either of them,
   this names, on a system that has nothing there, what it does have or what lies beside us: by the variables that they
   read, if nobody has set these.  */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const bundles[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian and its kin, Arch, Gentoo */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, Red Hat and their kin */
    "/etc/ssl/ca-bundle.pem",             /* SUSE */
    "/etc/ssl/cert.pem",                  /* others */
};

static const char *const terminals[] = {"/etc/terminfo/x", "/lib/terminfo/x", "/usr/share/terminfo/x"};

static int is_there(const char *path) { return access(path, R_OK) == 0; }

/* SSL_CERT_FILE=..., in memory that stays; NULL when there is no need or no bundle.  */
static char *certificates(void) {
    char *entry;
    if (getenv("SSL_CERT_FILE") || getenv("SSL_CERT_DIR") || is_there(CA_FILE) || is_there(CA_FOLDER)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof bundles / sizeof *bundles; i++) {
        if (is_there(bundles[i])) {
            return asprintf(&entry, "SSL_CERT_FILE=%s", bundles[i]) < 0 ? NULL : entry;
        }
    }
    return NULL;
}

/* TERMINFO_DIRS=..., likewise.  Its empty first part stands for where ncurses looks by itself.  */
static char *descriptions(void) {
    char *entry;
    Dl_info us;
    if (getenv("TERMINFO_DIRS")) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof terminals / sizeof *terminals; i++) {
        if (is_there(terminals[i])) {
            return NULL;
        }
    }
    if (!dladdr(terminals, &us) || strchr(us.dli_fname, ':')) {
        return NULL;
    }
    int folder = (int)(strrchr(us.dli_fname, '/') - us.dli_fname);
    return asprintf(&entry, "TERMINFO_DIRS=:%.*s/../share/terminfo", folder, us.dli_fname) < 0 ? NULL : entry;
}

__attribute__((constructor)) static void name_places(void) {
    char *entries[2];
    size_t count = 0, old = 0;
    if ((entries[count] = certificates())) {
        count++;
    }
    if ((entries[count] = descriptions())) {
        count++;
    }
    if (count == 0) {
        return;
    }
    while (environ && environ[old]) {
        old++;
    }
    char **fresh = malloc((old + count + 1) * sizeof *fresh);
    if (fresh == NULL) {
        return;
    }
    for (size_t i = 0; i < old; i++) {
        fresh[i] = environ[i];
    }
    memcpy(fresh + old, entries, count * sizeof *fresh);
    fresh[old + count] = NULL;
    /* Not setenv(): threads that read the environment now go on in the old array, which nobody frees.  */
    __atomic_store_n(&environ, fresh, __ATOMIC_RELEASE);
}
