/* census.c - a QEMU user-mode plugin that counts which cache lines a program's threads share.
 *
 * Inside its windows each guest thread counts its memory accesses, by (8-byte word, instruction, call context) and by
 * 64-byte line, in tables of its own: the figures don't depend on how the threads take turns.  When the guest asks for
 * it, or ends, the tables are joined and what concerns shared written lines (touched by two threads, written by one) is
 * written to a text file; docs/census-dump.md describes it.
 *
 * The guest asks by lseek(any descriptor, CENSUS_MARK | operation, argument), see `enum mark`; the system call itself
 * may fail, nobody minds.
 *
 * Options: out=PREFIX   dump N goes to PREFIX.N (default "census")
 *          whole=on     until the first window opens count every thread, from the moment when there is a second one
 *          depth=N      callers in a call context (default 8, at most 32)
 *          trace=N      also keep, for each thread, its first N accesses in order (default 0); the dump has those that
 *                       concern shared written lines
 *
 * Code is translated without callbacks until the guest makes its first thread: what comes before can't be contended and
 * runs at QEMU's own speed.
 *
 * Not counted: what the kernel reads and writes.
 */
#define _GNU_SOURCE
#include "qemu_plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = CENSUS_API;

#define DUMP_FORMAT 1
#define CENSUS_MARK UINT64_C(0x0066746e756d7000) /* "ftnump"; the low byte is the operation */

enum mark {
    MARK_BEGIN = 1, /* the calling thread's window opens */
    MARK_END = 2,   /* and closes */
    MARK_DUMP = 3,  /* write PREFIX.<argument>, then forget all that was counted */
    MARK_FINISH = 4 /* nothing is to be counted any more: run on at full speed */
};

enum {
    LINE = 64,
    WORD = 8,
    BURST = 200, /* instructions of its own after which a thread may be taken to have lost a line */
    SELDOM = 16, /* accesses that a large array's pass makes; what is shared later is most often used more */
    MAX_DEPTH = 32,
    SYSCALL_DEPTH = 24,
    MAX_STACK = 4096,
    MAX_VCPUS = 4096,
    CLONE_THREAD_FLAG = 0x10000,
};

/* Bytes that all threads' tables together may have.  When those of accesses are full, what concerns lines that only one
 * thread has touched is dropped, see `make_room`. */
#define ACCESSES_MEMORY (UINT64_C(256) << 20)
#define LINES_MEMORY (UINT64_C(512) << 20)

/* x86-64 system calls. */
enum { SYS_LSEEK = 8, SYS_CLONE = 56, SYS_EXIT = 60, SYS_FUTEX = 202, SYS_MADVISE = 28, SYS_EXIT_GROUP = 231 };
enum { SYS_CLONE3 = 435 };

typedef struct {
    uint64_t pc;
    uint32_t id;
    uint8_t length;
    bool locked; /* has the lock prefix, or is xchg, which needs none */
    bool call;
    bool ret;
} Instruction;

typedef struct {
    uint64_t word;
    uint32_t instruction;
    uint32_t context;
    uint64_t reads;
    uint64_t writes;
} Access;

typedef struct {
    uint64_t line; /* address / LINE */
    uint64_t last; /* instruction count at the latest access */
    uint64_t reads;
    uint64_t writes;
    uint64_t bursts;    /* that had a write */
    uint32_t used;      /* so that line 0 can be told from an empty slot */
    uint32_t in_writer; /* the present burst has had a write */
    uint64_t dropped;   /* accesses that are no longer told by word */
} LineCount;

typedef struct {
    uint64_t hash;
    uint32_t first; /* index of the innermost return address in `frames` */
    uint32_t count;
} Context;

typedef struct {
    uint64_t slot;       /* where on the guest's stack the return address lies */
    uint64_t return_to;  /* the return address */
    uint32_t context;    /* 1 + index of the context, 0: not looked up yet */
    uint32_t generation; /* the generation of tables that `context` belongs to */
} Call;

typedef struct {
    int64_t number;
    uint64_t detail;
    uint64_t count;
    uint32_t context;
} SystemCall;

typedef struct {
    uint64_t line;
    uint32_t delta; /* instructions since the previous kept access */
    uint32_t kind;  /* 0 read, 1 write, 2 locked write */
} Step;

/* A guest thread.  Only the thread itself touches it, but for a dump, see `stop_counting`. */
typedef struct Thread {
    struct Thread *next;
    uint32_t serial;
    atomic_bool busy;   /* inside a callback that uses the tables */
    atomic_bool active; /* inside a window; relaxed: another thread may only end what was counted as a whole */
    uint32_t generation;
    uint64_t windows;
    uint64_t executed; /* instructions, only while active */
    uint64_t lost;     /* accesses that are told in no table, because all are full */
    bool wants_room;   /* the table of accesses should grow and must not */

    Call *stack;
    uint32_t depth;

    Access *accesses;
    size_t accesses_used, accesses_size;
    LineCount *lines;
    size_t lines_used, lines_size;
    Context *contexts;
    size_t contexts_used, contexts_size;
    uint32_t *context_index; /* 1 + index into contexts */
    size_t context_index_size;
    uint64_t *frames;
    size_t frames_used, frames_size;
    SystemCall *calls;
    size_t calls_used, calls_size;
    Step *steps;
    size_t steps_used;
    uint64_t step_at; /* `executed` at the latest step */
} Thread;

static char out_prefix[4096] = "census";
static atomic_bool whole; /* relaxed: what it changes is ordered by `stop_counting` */
static uint32_t depth_limit = 8;
static size_t trace_limit;
static qemu_plugin_id_t plugin;
static pid_t owner; /* a child made by fork writes no dump */

/* Whether code is translated with callbacks.  Set by the thread that makes the first other one, before there is one. */
static atomic_bool instrumenting; /* relaxed: QEMU's exclusive section orders what follows from it */

/* The thread that makes QEMU drop all callbacks and translations, until it has.  Relaxed: nothing is read on its word
 * but what QEMU's exclusive section orders. */
static _Atomic(const Thread *) resetting;

static atomic_bool stopped; /* a thread reads all tables; see `enter` for the orders */
static bool membarrier_works;

/* Relaxed: sums that no other data depends on. */
static _Atomic uint64_t accesses_memory;
static _Atomic uint64_t lines_memory;
static atomic_bool all_is_shared; /* making room was of no use; relaxed: a hint */

static _Atomic(Thread *) vcpus[MAX_VCPUS]; /* relaxed: each slot is used by one thread at a time */
static pthread_mutex_t threads_mutex = PTHREAD_MUTEX_INITIALIZER;
static Thread *threads; /* all that ever were, newest first; threads_mutex */
static uint32_t thread_count;

static pthread_mutex_t code_mutex = PTHREAD_MUTEX_INITIALIZER;
static Instruction **code; /* by pc, open addressing; code_mutex */
static size_t code_used, code_size;

static pthread_mutex_t dump_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool dumped; /* relaxed: a hint for the program's end */

static _Noreturn void __attribute__((format(printf, 1, 2))) give_up(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("census: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(70);
}

static void *allocate(size_t count, size_t size) {
    void *block = calloc(count, size);
    if (block == NULL) {
        give_up("no memory for %zu entries of %zu bytes", count, size);
    }
    return block;
}

/* `array` with room for `needed` entries of `size` bytes. */
static void *with_room(void *array, size_t *room, size_t needed, size_t size) {
    if (needed <= *room) {
        return array;
    }
    size_t larger = *room ? *room : 64;
    while (larger < needed) {
        larger *= 2;
    }
    void *block = realloc(array, larger * size);
    if (block == NULL) {
        give_up("no memory for %zu entries of %zu bytes", larger, size);
    }
    *room = larger;
    return block;
}

static inline uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* --- threads --- */

static Thread *new_thread(unsigned vcpu) {
    if (vcpu >= MAX_VCPUS) {
        give_up("the program has more than %d threads at once", MAX_VCPUS);
    }
    Thread *thread = allocate(1, sizeof *thread);
    thread->stack = allocate(MAX_STACK, sizeof *thread->stack);
    bool counted = atomic_load_explicit(&whole, memory_order_relaxed);
    atomic_store_explicit(&thread->active, counted, memory_order_relaxed);
    thread->windows = counted;
    pthread_mutex_lock(&threads_mutex);
    thread->serial = thread_count++;
    thread->next = threads;
    threads = thread;
    pthread_mutex_unlock(&threads_mutex);
    atomic_store_explicit(&vcpus[vcpu], thread, memory_order_relaxed);
    return thread;
}

/* The newest thread; `next` leads to all older ones and never changes. */
static Thread *first_thread(void) {
    pthread_mutex_lock(&threads_mutex);
    Thread *first = threads;
    pthread_mutex_unlock(&threads_mutex);
    return first;
}

static inline Thread *thread_of(unsigned vcpu) {
    Thread *thread = vcpu < MAX_VCPUS ? atomic_load_explicit(&vcpus[vcpu], memory_order_relaxed) : NULL;
    return thread != NULL ? thread : new_thread(vcpu);
}

/* The thread says that it uses its tables; waits while another thread reads them.
 *
 * Store busy, then load stopped; the other stores stopped, then loads busy: one of the two must see the other, which
 * takes a full barrier on each side.  The other's membarrier is the barrier for both. */
static inline void enter(Thread *thread) {
    for (;;) {
        atomic_store_explicit(&thread->busy, true, memory_order_relaxed);
        if (membarrier_works) {
            atomic_signal_fence(memory_order_seq_cst);
        } else {
            atomic_thread_fence(memory_order_seq_cst);
        }
        /* Acquire: pairs with the release in resume_counting, so that this thread sees its tables as they were left. */
        if (!atomic_load_explicit(&stopped, memory_order_acquire)) {
            return;
        }
        atomic_store_explicit(&thread->busy, false, memory_order_release);
        sched_yield();
    }
}

/* Release: pairs with the acquire in stop_counting, so that the other sees what was counted. */
static inline void leave(Thread *thread) { atomic_store_explicit(&thread->busy, false, memory_order_release); }

static inline bool is_active(Thread *thread) { return atomic_load_explicit(&thread->active, memory_order_relaxed); }

/* As enter, if the thread is in a window; false if it isn't. */
static inline bool enter_window(Thread *thread) {
    if (!is_active(thread)) {
        return false;
    }
    enter(thread);
    if (!is_active(thread)) { /* ended while this thread waited */
        leave(thread);
        return false;
    }
    return true;
}

/* On return no thread uses its tables or will before `resume_counting`.  Call with dump_mutex, outside enter/leave. */
static void stop_counting(void) {
    atomic_store_explicit(&stopped, true, memory_order_seq_cst);
    if (membarrier_works) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    } else {
        atomic_thread_fence(memory_order_seq_cst);
    }
    for (Thread *thread = first_thread(); thread != NULL; thread = thread->next) {
        while (atomic_load_explicit(&thread->busy, memory_order_acquire)) {
            sched_yield();
        }
    }
}

/* Release: pairs with the acquire in enter. */
static void resume_counting(void) { atomic_store_explicit(&stopped, false, memory_order_release); }

/* --- call contexts --- */

/* The context of the `limit` innermost calls, as an index into thread->contexts. */
static uint32_t find_context(Thread *thread, uint32_t limit) {
    uint64_t frames[MAX_DEPTH];
    uint32_t count = 0;
    uint64_t hash = limit;
    for (uint32_t k = thread->depth; k > 0 && count < limit; k--) {
        frames[count] = thread->stack[k - 1].return_to;
        hash = mix(hash ^ frames[count]) + count;
        count++;
    }
    if (2 * (thread->contexts_used + 1) > thread->context_index_size) {
        size_t size = thread->context_index_size ? 2 * thread->context_index_size : 1024;
        free(thread->context_index);
        thread->context_index = allocate(size, sizeof *thread->context_index);
        thread->context_index_size = size;
        for (size_t k = 0; k < thread->contexts_used; k++) {
            size_t slot = thread->contexts[k].hash & (size - 1);
            while (thread->context_index[slot]) {
                slot = (slot + 1) & (size - 1);
            }
            thread->context_index[slot] = (uint32_t)k + 1;
        }
    }
    size_t mask = thread->context_index_size - 1;
    size_t slot = hash & mask;
    for (; thread->context_index[slot]; slot = (slot + 1) & mask) {
        Context *context = &thread->contexts[thread->context_index[slot] - 1];
        if (context->hash == hash && context->count == count &&
            memcmp(&thread->frames[context->first], frames, count * sizeof *frames) == 0) {
            return thread->context_index[slot] - 1;
        }
    }
    thread->contexts =
        with_room(thread->contexts, &thread->contexts_size, thread->contexts_used + 1, sizeof *thread->contexts);
    thread->frames =
        with_room(thread->frames, &thread->frames_size, thread->frames_used + count + 1, sizeof *thread->frames);
    memcpy(&thread->frames[thread->frames_used], frames, count * sizeof *frames);
    thread->contexts[thread->contexts_used++] =
        (Context){.hash = hash, .first = (uint32_t)thread->frames_used, .count = count};
    thread->frames_used += count;
    thread->context_index[slot] = (uint32_t)thread->contexts_used;
    return (uint32_t)thread->contexts_used - 1;
}

static inline uint32_t present_context(Thread *thread) {
    if (thread->depth == 0) {
        return find_context(thread, depth_limit);
    }
    Call *call = &thread->stack[thread->depth - 1];
    if (call->context == 0 || call->generation != thread->generation) {
        call->context = find_context(thread, depth_limit) + 1;
        call->generation = thread->generation;
    }
    return call->context - 1;
}

/* Calls below `slot` are over, whether they returned or were jumped out of. */
static inline void unwind(Thread *thread, uint64_t slot) {
    while (thread->depth > 0 && thread->stack[thread->depth - 1].slot <= slot) {
        thread->depth--;
    }
}

static inline void push_call(Thread *thread, uint64_t slot, uint64_t return_to) {
    unwind(thread, slot);
    if (thread->depth == MAX_STACK) {
        /* Forget the outer half: only the innermost frames are ever shown. */
        memmove(thread->stack, thread->stack + MAX_STACK / 2, MAX_STACK / 2 * sizeof *thread->stack);
        thread->depth = MAX_STACK / 2;
    }
    thread->stack[thread->depth++] = (Call){.slot = slot, .return_to = return_to};
}

/* --- counting --- */

static inline uint64_t access_hash(uint64_t word, uint32_t instruction, uint32_t context) {
    return mix(word ^ ((uint64_t)instruction << 40) ^ ((uint64_t)context << 20));
}

/* Whether `used` may go from `old` to `wanted` bytes of one table without exceeding `limit`; then it has. */
static bool reserve(_Atomic uint64_t *used, uint64_t old, uint64_t wanted, uint64_t limit) {
    uint64_t more = wanted - old;
    if (atomic_fetch_add_explicit(used, more, memory_order_relaxed) + more > limit) {
        atomic_fetch_sub_explicit(used, more, memory_order_relaxed);
        return false;
    }
    return true;
}

static void insert_access(Access *table, size_t size, const Access *access) {
    size_t slot = access_hash(access->word, access->instruction, access->context) & (size - 1);
    while (table[slot].reads | table[slot].writes) {
        slot = (slot + 1) & (size - 1);
    }
    table[slot] = *access;
}

static bool grow_accesses(Thread *thread) {
    size_t size = thread->accesses_size ? 2 * thread->accesses_size : 4096;
    if (!reserve(&accesses_memory, thread->accesses_size * sizeof(Access), size * sizeof(Access), ACCESSES_MEMORY)) {
        return false;
    }
    Access *larger = allocate(size, sizeof *larger);
    for (size_t k = 0; k < thread->accesses_size; k++) {
        if (thread->accesses[k].reads | thread->accesses[k].writes) {
            insert_access(larger, size, &thread->accesses[k]);
        }
    }
    free(thread->accesses);
    thread->accesses = larger;
    thread->accesses_size = size;
    return true;
}

static bool grow_lines(Thread *thread) {
    size_t size = thread->lines_size ? 2 * thread->lines_size : 1024;
    if (!reserve(&lines_memory, thread->lines_size * sizeof(LineCount), size * sizeof(LineCount), LINES_MEMORY)) {
        return false;
    }
    LineCount *larger = allocate(size, sizeof *larger);
    for (size_t k = 0; k < thread->lines_size; k++) {
        if (thread->lines[k].used) {
            size_t slot = mix(thread->lines[k].line) & (size - 1);
            while (larger[slot].used) {
                slot = (slot + 1) & (size - 1);
            }
            larger[slot] = thread->lines[k];
        }
    }
    free(thread->lines);
    thread->lines = larger;
    thread->lines_size = size;
    return true;
}

static inline LineCount *find_line(const Thread *thread, uint64_t line) {
    if (thread->lines_size == 0) {
        return NULL;
    }
    size_t mask = thread->lines_size - 1;
    size_t slot = mix(line) & mask;
    while (thread->lines[slot].used && thread->lines[slot].line != line) {
        slot = (slot + 1) & mask;
    }
    return &thread->lines[slot];
}

static inline void count_word(Thread *thread, uint64_t word, const Instruction *instruction, uint32_t context,
                              bool store) {
    bool full = false;
    if (2 * (thread->accesses_used + 1) > thread->accesses_size && !grow_accesses(thread)) {
        thread->wants_room = !atomic_load_explicit(&all_is_shared, memory_order_relaxed);
        full = 4 * (thread->accesses_used + 1) > 3 * thread->accesses_size;
        if (thread->accesses_size == 0) {
            thread->lost++;
            return;
        }
    }
    size_t mask = thread->accesses_size - 1;
    size_t slot = access_hash(word, instruction->id, context) & mask;
    Access *access;
    for (;; slot = (slot + 1) & mask) {
        access = &thread->accesses[slot];
        if ((access->reads | access->writes) == 0) {
            if (full) {
                thread->lost++;
                return;
            }
            access->word = word;
            access->instruction = instruction->id;
            access->context = context;
            thread->accesses_used++;
            break;
        }
        if (access->word == word && access->instruction == instruction->id && access->context == context) {
            break;
        }
    }
    if (store) {
        access->writes++;
    } else {
        access->reads++;
    }
}

static inline void count_line(Thread *thread, uint64_t line, const Instruction *instruction, bool store) {
    bool full = 2 * (thread->lines_used + 1) > thread->lines_size && !grow_lines(thread);
    LineCount *count = find_line(thread, line);
    if (count == NULL || (full && !count->used)) {
        thread->lost++;
        return;
    }
    if (!count->used) {
        count->used = 1;
        count->line = line;
        thread->lines_used++;
    } else if (thread->executed - count->last > BURST) {
        count->in_writer = 0;
    }
    count->last = thread->executed;
    if (store) {
        count->writes++;
        count->bursts += !count->in_writer;
        count->in_writer = 1;
    } else {
        count->reads++;
    }
    if (thread->steps_used < trace_limit) {
        if (thread->steps == NULL) {
            thread->steps = allocate(trace_limit, sizeof *thread->steps);
        }
        uint64_t delta = thread->executed - thread->step_at;
        thread->step_at = thread->executed;
        thread->steps[thread->steps_used++] = (Step){
            .line = line,
            .delta = delta < UINT32_MAX ? (uint32_t)delta : UINT32_MAX,
            .kind = store ? 1u + instruction->locked : 0u,
        };
    }
}

static void count_access(Thread *thread, const Instruction *instruction, uint64_t address, size_t size, bool store) {
    /* QEMU runs a locked instruction as one access or as a read and a write, depending on whether there is another
     * thread.  Either way it is one locked write. */
    if (instruction->locked && !store) {
        return;
    }
    uint32_t context = present_context(thread);
    uint64_t end = address + size;
    for (uint64_t word = address & ~(uint64_t)(WORD - 1); word < end; word += WORD) {
        count_word(thread, word, instruction, context, store);
    }
    for (uint64_t line = address / LINE; line * LINE < end; line++) {
        count_line(thread, line, instruction, store);
    }
}

/* --- room --- */

typedef struct {
    uint64_t line;
    uint32_t threads;
    bool written;
    bool used;
} Shared;

typedef struct {
    Shared *slots;
    size_t used;
    size_t size;
} SharedLines;

static Shared *find_shared(const SharedLines *lines, uint64_t line) {
    size_t slot = mix(line) & (lines->size - 1);
    while (lines->slots[slot].used && lines->slots[slot].line != line) {
        slot = (slot + 1) & (lines->size - 1);
    }
    return &lines->slots[slot];
}

static SharedLines join_lines(void) {
    size_t total = 0;
    for (Thread *thread = first_thread(); thread != NULL; thread = thread->next) {
        total += thread->lines_used;
    }
    SharedLines joined = {.size = 1024};
    while (joined.size < 2 * total) {
        joined.size *= 2;
    }
    joined.slots = allocate(joined.size, sizeof(Shared));
    for (Thread *thread = first_thread(); thread != NULL; thread = thread->next) {
        for (size_t k = 0; k < thread->lines_size; k++) {
            LineCount *count = &thread->lines[k];
            if (count->used) {
                Shared *shared = find_shared(&joined, count->line);
                shared->used = true;
                shared->line = count->line;
                shared->threads++;
                shared->written |= count->writes != 0;
            }
        }
    }
    return joined;
}

static bool is_shared(const SharedLines *lines, uint64_t line) {
    const Shared *shared = find_shared(lines, line);
    return shared->used && shared->threads > 1 && shared->written;
}

static bool stays(const SharedLines *lines, const Access *access) {
    return access->reads + access->writes > SELDOM || find_shared(lines, access->word / LINE)->threads > 1;
}

/* Forget, word by word, what the thread did seldom and to lines that no other has touched. */
static void drop_private(Thread *thread, const SharedLines *lines) {
    size_t kept = 0;
    for (size_t k = 0; k < thread->accesses_size; k++) {
        const Access *access = &thread->accesses[k];
        kept += (access->reads | access->writes) && stays(lines, access);
    }
    size_t size = 4096;
    while (size < 4 * kept) {
        size *= 2;
    }
    if (size >= thread->accesses_size) {
        return;
    }
    Access *smaller = allocate(size, sizeof *smaller);
    for (size_t k = 0; k < thread->accesses_size; k++) {
        const Access *access = &thread->accesses[k];
        if ((access->reads | access->writes) == 0) {
            continue;
        }
        if (stays(lines, access)) {
            insert_access(smaller, size, access);
        } else {
            LineCount *count = find_line(thread, access->word / LINE);
            if (count != NULL && count->used) {
                count->dropped += access->reads + access->writes;
            }
        }
    }
    atomic_fetch_sub_explicit(&accesses_memory, (thread->accesses_size - size) * sizeof(Access), memory_order_relaxed);
    free(thread->accesses);
    thread->accesses = smaller;
    thread->accesses_size = size;
    thread->accesses_used = kept;
}

/* Nothing is lost by this but for lines that later turn out to be shared: those miss what was dropped, and the dump
 * says how much that is. */
static void make_room(Thread *thread) {
    pthread_mutex_lock(&dump_mutex);
    /* Another thread may have made room while this one waited. */
    if (2 * (thread->accesses_used + 1) > thread->accesses_size) {
        stop_counting();
        SharedLines lines = join_lines();
        for (Thread *each = first_thread(); each != NULL; each = each->next) {
            drop_private(each, &lines);
        }
        free(lines.slots);
        bool useless = atomic_load_explicit(&accesses_memory, memory_order_relaxed) > ACCESSES_MEMORY / 2;
        atomic_store_explicit(&all_is_shared, useless, memory_order_relaxed);
        resume_counting();
    }
    thread->wants_room = false;
    pthread_mutex_unlock(&dump_mutex);
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    const Instruction *instruction = data;
    Thread *thread = thread_of(vcpu);
    bool store = qemu_plugin_mem_is_store(info);
    if (enter_window(thread)) {
        count_access(thread, instruction, address, (size_t)1 << qemu_plugin_mem_size_shift(info), store);
        leave(thread);
        if (thread->wants_room) {
            make_room(thread);
        }
    }
    /* After it is counted: the push belongs to the caller, the pop to the callee. */
    if (instruction->call && store) {
        push_call(thread, address, instruction->pc + instruction->length);
    } else if (instruction->ret) {
        unwind(thread, address);
    }
}

static void on_block(unsigned vcpu, void *data) {
    Thread *thread = thread_of(vcpu);
    if (enter_window(thread)) {
        thread->executed += (uintptr_t)data; /* instructions in the block */
        leave(thread);
    }
}

/* --- translation --- */

static Instruction *intern(uint64_t pc, const uint8_t *bytes, size_t length) {
    if (2 * (code_used + 1) > code_size) {
        size_t size = code_size ? 2 * code_size : 1 << 16;
        Instruction **larger = allocate(size, sizeof(Instruction *));
        for (size_t k = 0; k < code_size; k++) {
            if (code[k] != NULL) {
                size_t slot = mix(code[k]->pc) & (size - 1);
                while (larger[slot] != NULL) {
                    slot = (slot + 1) & (size - 1);
                }
                larger[slot] = code[k];
            }
        }
        free(code);
        code = larger;
        code_size = size;
    }
    size_t slot = mix(pc) & (code_size - 1);
    while (code[slot] != NULL && code[slot]->pc != pc) {
        slot = (slot + 1) & (code_size - 1);
    }
    if (code[slot] == NULL) {
        code[slot] = allocate(1, sizeof(Instruction));
        code[slot]->pc = pc;
        code[slot]->id = (uint32_t)code_used++;
    }
    Instruction *instruction = code[slot];
    size_t at = 0;
    bool lock = false;
    for (; at < length; at++) { /* legacy prefixes */
        uint8_t byte = bytes[at];
        if (byte == 0xf0) {
            lock = true;
        } else if (byte != 0x66 && byte != 0x67 && byte != 0xf2 && byte != 0xf3 && byte != 0x2e && byte != 0x36 &&
                   byte != 0x3e && byte != 0x26 && byte != 0x64 && byte != 0x65) {
            break;
        }
    }
    if (at < length && (bytes[at] & 0xf0) == 0x40) { /* REX */
        at++;
    }
    uint8_t opcode = at < length ? bytes[at] : 0;
    uint8_t modrm = at + 1 < length ? bytes[at + 1] : 0xff;
    bool exchange = (opcode == 0x86 || opcode == 0x87) && modrm >> 6 != 3;
    instruction->length = (uint8_t)length;
    instruction->locked = lock || exchange;
    instruction->call = opcode == 0xe8 || (opcode == 0xff && modrm != 0xff && ((modrm >> 3) & 7) == 2);
    instruction->ret = opcode == 0xc3 || opcode == 0xc2;
    return instruction;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)count);
    pthread_mutex_lock(&code_mutex);
    for (size_t k = 0; k < count; k++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, k);
        size_t length = qemu_plugin_insn_size(insn);
#if CENSUS_API >= 3
        uint8_t bytes[16];
        length = qemu_plugin_insn_data(insn, bytes, length < sizeof bytes ? length : sizeof bytes);
#else
        const uint8_t *bytes = qemu_plugin_insn_data(insn);
#endif
        Instruction *instruction = intern(qemu_plugin_insn_vaddr(insn), bytes, length);
        qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, instruction);
    }
    pthread_mutex_unlock(&code_mutex);
}

/* --- the dump --- */

static void write_context(FILE *file, const Thread *thread, uint32_t index) {
    const Context *context = &thread->contexts[index];
    fprintf(file, "context %" PRIu32 " %" PRIu32, thread->serial, index);
    for (uint32_t k = 0; k < context->count; k++) {
        fprintf(file, " %" PRIx64, thread->frames[context->first + k]);
    }
    fputc('\n', file);
}

static void write_thread(FILE *file, const Thread *thread, const SharedLines *lines, bool *instructions) {
    uint64_t lost = thread->lost;
    bool *contexts = allocate(thread->contexts_used + 1, sizeof *contexts);
    for (size_t k = 0; k < thread->lines_size; k++) {
        const LineCount *count = &thread->lines[k];
        if (count->used && is_shared(lines, count->line)) {
            fprintf(file, "line %" PRIu32 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", thread->serial,
                    count->line * LINE, count->reads, count->writes, count->bursts);
            lost += count->dropped;
        }
    }
    fprintf(file, "thread %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", thread->serial, thread->windows,
            thread->executed, lost);
    for (size_t k = 0; k < thread->accesses_size; k++) {
        const Access *access = &thread->accesses[k];
        if ((access->reads | access->writes) && is_shared(lines, access->word / LINE)) {
            fprintf(file, "access %" PRIu32 " %" PRIx64 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
                    thread->serial, access->word, access->instruction, access->context, access->reads, access->writes);
            instructions[access->instruction] = true;
            contexts[access->context] = true;
        }
    }
    for (size_t k = 0; k < thread->calls_used; k++) {
        const SystemCall *call = &thread->calls[k];
        fprintf(file, "syscall %" PRIu32 " %" PRId64 " %" PRIu64 " %" PRIu32 " %" PRIu64 "\n", thread->serial,
                call->number, call->detail, call->context, call->count);
        contexts[call->context] = true;
    }
    uint64_t delta = 0;
    for (size_t k = 0; k < thread->steps_used; k++) {
        const Step *step = &thread->steps[k];
        delta += step->delta;
        if (is_shared(lines, step->line)) {
            fprintf(file, "step %" PRIu32 " %" PRIu64 " %" PRIx64 " %" PRIu32 "\n", thread->serial, delta,
                    step->line * LINE, step->kind);
            delta = 0;
        }
    }
    for (size_t k = 0; k < thread->contexts_used; k++) {
        if (contexts[k]) {
            write_context(file, thread, (uint32_t)k);
        }
    }
    free(contexts);
}

static void forget(Thread *thread) {
    atomic_fetch_sub_explicit(&accesses_memory, thread->accesses_size * sizeof(Access), memory_order_relaxed);
    atomic_fetch_sub_explicit(&lines_memory, thread->lines_size * sizeof(LineCount), memory_order_relaxed);
    free(thread->accesses);
    free(thread->lines);
    free(thread->contexts);
    free(thread->context_index);
    free(thread->frames);
    free(thread->calls);
    free(thread->steps);
    thread->accesses = NULL;
    thread->lines = NULL;
    thread->contexts = NULL;
    thread->context_index = NULL;
    thread->frames = NULL;
    thread->calls = NULL;
    thread->steps = NULL;
    thread->accesses_used = thread->accesses_size = thread->lines_used = thread->lines_size = 0;
    thread->contexts_used = thread->contexts_size = thread->context_index_size = 0;
    thread->frames_used = thread->frames_size = thread->calls_used = thread->calls_size = thread->steps_used = 0;
    thread->windows = atomic_load_explicit(&whole, memory_order_relaxed);
    thread->executed = thread->step_at = thread->lost = 0;
    thread->generation++;
}

/* Write PREFIX.<number>, whole or not at all. */
static void dump(uint64_t number) {
    char part[sizeof out_prefix + 32];
    char path[sizeof out_prefix + 32];
    snprintf(path, sizeof path, "%s.%" PRIu64, out_prefix, number);
    snprintf(part, sizeof part, "%s.%" PRIu64 ".part", out_prefix, number);
    pthread_mutex_lock(&dump_mutex);
    stop_counting();
    FILE *file = fopen(part, "w");
    if (file == NULL) {
        give_up("%s can't be written: %s", part, strerror(errno));
    }
    fprintf(file, "census %d %d %d\n", DUMP_FORMAT, LINE, BURST);
    SharedLines lines = join_lines();
    pthread_mutex_lock(&code_mutex);
    bool *instructions = allocate(code_used + 1, sizeof *instructions);
    for (Thread *thread = first_thread(); thread != NULL; thread = thread->next) {
        if (thread->windows) {
            write_thread(file, thread, &lines, instructions);
        }
        forget(thread);
    }
    for (size_t k = 0; k < code_size; k++) {
        if (code[k] != NULL && instructions[code[k]->id]) {
            fprintf(file, "instruction %" PRIu32 " %" PRIx64 " %d\n", code[k]->id, code[k]->pc, code[k]->locked);
        }
    }
    pthread_mutex_unlock(&code_mutex);
    fputs("end\n", file);
    if (ferror(file) | fclose(file) || rename(part, path) != 0) {
        give_up("%s can't be written: %s", path, strerror(errno));
    }
    free(instructions);
    free(lines.slots);
    atomic_store_explicit(&dumped, true, memory_order_relaxed);
    resume_counting();
    pthread_mutex_unlock(&dump_mutex);
}

/* --- system calls --- */

static void on_syscall(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t);

/* With no thread running the guest's code: QEMU has dropped all callbacks and all translations. */
static void on_reset(qemu_plugin_id_t id) {
    if (atomic_load_explicit(&instrumenting, memory_order_relaxed)) {
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    }
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    atomic_store_explicit(&resetting, NULL, memory_order_relaxed);
}

/* Takes effect when the calling thread, back from its system call, begins its next block. */
static void set_instrumenting(const Thread *thread, bool wanted) {
    if (atomic_exchange_explicit(&instrumenting, wanted, memory_order_relaxed) != wanted) {
        atomic_store_explicit(&resetting, thread, memory_order_relaxed);
        qemu_plugin_reset(plugin, on_reset);
    }
}

/* A new thread may run before its maker, which is to bring the callbacks about, gets a processor again.  It waits at
 * its first system call, and so before its first window. */
static void await_reset(const Thread *thread) {
    for (;;) {
        const Thread *by = atomic_load_explicit(&resetting, memory_order_relaxed);
        if (by == NULL || by == thread) {
            return;
        }
        sched_yield();
    }
}

static void count_syscall(Thread *thread, int64_t number, uint64_t detail) {
    uint32_t context = find_context(thread, SYSCALL_DEPTH);
    for (size_t k = 0; k < thread->calls_used; k++) {
        SystemCall *call = &thread->calls[k];
        if (call->number == number && call->detail == detail && call->context == context) {
            call->count++;
            return;
        }
    }
    thread->calls = with_room(thread->calls, &thread->calls_size, thread->calls_used + 1, sizeof *thread->calls);
    thread->calls[thread->calls_used++] =
        (SystemCall){.number = number, .detail = detail, .count = 1, .context = context};
}

/* The program has windows of its own: what was counted outside them doesn't count. */
static void end_whole(void) {
    pthread_mutex_lock(&dump_mutex);
    stop_counting();
    if (atomic_exchange_explicit(&whole, false, memory_order_relaxed)) {
        for (Thread *thread = first_thread(); thread != NULL; thread = thread->next) {
            atomic_store_explicit(&thread->active, false, memory_order_relaxed);
            forget(thread);
        }
    }
    resume_counting();
    pthread_mutex_unlock(&dump_mutex);
}

static void on_mark(Thread *thread, uint64_t operation, uint64_t argument) {
    switch (operation) {
    case MARK_BEGIN:
        if (atomic_load_explicit(&whole, memory_order_relaxed)) {
            end_whole();
        }
        atomic_store_explicit(&thread->active, true, memory_order_relaxed);
        thread->windows++;
        break;
    case MARK_END:
        atomic_store_explicit(&thread->active, false, memory_order_relaxed);
        break;
    case MARK_DUMP:
        dump(argument);
        break;
    case MARK_FINISH:
        set_instrumenting(thread, false);
        break;
    default:
        give_up("the guest made an unknown mark, %" PRIu64, operation);
    }
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    Thread *thread = thread_of(vcpu);
    await_reset(thread);
    if (number == SYS_LSEEK && (a2 & ~UINT64_C(0xff)) == CENSUS_MARK) {
        on_mark(thread, a2 & 0xff, a3);
        return;
    }
    if (number == SYS_CLONE3 || (number == SYS_CLONE && (a1 & CLONE_THREAD_FLAG))) {
        set_instrumenting(thread, true);
    }
    if (atomic_load_explicit(&instrumenting, memory_order_relaxed) && enter_window(thread)) {
        uint64_t detail = number == SYS_FUTEX ? (a2 & 0x7f) : number == SYS_MADVISE ? a3 : 0;
        count_syscall(thread, number, detail);
        leave(thread);
    }
    if (number == SYS_EXIT) {
        /* QEMU gives the number of an ended thread to a later one; they are not the same thread. */
        atomic_store_explicit(&thread->active, false, memory_order_relaxed);
        free(thread->stack);
        thread->stack = NULL;
        thread->depth = 0;
        atomic_store_explicit(&vcpus[vcpu], NULL, memory_order_relaxed);
    } else if (number == SYS_EXIT_GROUP && getpid() == owner && atomic_load_explicit(&whole, memory_order_relaxed) &&
               !atomic_load_explicit(&dumped, memory_order_relaxed)) {
        dump(0);
    }
}

static bool parse_number(const char *text, uint64_t most, uint64_t *number) {
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *text != '\0' && *end == '\0' && *number <= most;
}

static bool parse_option(const char *option) {
    uint64_t number;
    if (strncmp(option, "out=", 4) == 0) {
        return snprintf(out_prefix, sizeof out_prefix, "%s", option + 4) < (int)sizeof out_prefix;
    }
    if (strcmp(option, "whole=on") == 0) {
        atomic_store_explicit(&whole, true, memory_order_relaxed);
        return true;
    }
    if (strncmp(option, "depth=", 6) == 0 && parse_number(option + 6, MAX_DEPTH, &number)) {
        depth_limit = (uint32_t)number;
        return true;
    }
    if (strncmp(option, "trace=", 6) == 0 && parse_number(option + 6, UINT32_MAX, &number)) {
        trace_limit = number;
        return true;
    }
    return false;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    if (info->system_emulation || strcmp(info->target_name, "x86_64") != 0) {
        fprintf(stderr, "census: this counts x86-64 programs under qemu-x86_64, not %s\n", info->target_name);
        return -1;
    }
    if (CENSUS_API < info->version.min || CENSUS_API > info->version.cur) {
        fprintf(stderr, "census: compiled for version %d of the plugin API; this QEMU has %d to %d\n", CENSUS_API,
                info->version.min, info->version.cur);
        return -1;
    }
    for (int k = 0; k < argc; k++) {
        if (!parse_option(argv[k])) {
            fprintf(stderr, "census: no such option: %s\n", argv[k]);
            return -1;
        }
    }
    plugin = id;
    owner = getpid();
    membarrier_works = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    return 0;
}
