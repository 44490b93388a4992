/* Measures what it costs on this machine to move a cache line between two cores, or what two cores do for a program
 * that shares nothing.
 *
 *     handover costs CPU CPU REPEATS
 *     handover control CPU CPU STEPS REPEATS
 *
 * One JSON object of lists of REPEATS measurements, in nanoseconds, goes to standard output.
 *
 * costs: `handover`, what a locked add to a line that the other core wrote last takes longer than one to an own line,
 * when the core does nothing else until it is done; `far`, the same when the core may do what comes after, FAR
 * instructions from one add to the next; `near`, the same for shorter ways, an object of lists by instructions: a core
 * that waits for one line asks for those that it needs soon, so adds that are near each other take less; `one_way`,
 * half a round trip of a word that one core writes and the other waits for; `own_add`, a locked add to a line that the
 * core has; `contended_add`, the time per add while both cores add to one line as fast as they can.
 *
 * control: `one` and `two`, the processor time of a step of a computation in registers, by a thread alone and by two at
 * once: it doesn't grow when a thread is given no processor, but it does when two share a physical core.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TURNS = 200,      /* of each core; a repeat must be short beside a time slice, for it to pass undisturbed */
    LINES = 16,       /* that a core adds to in its turn */
    BLOCK = 18,       /* instructions of one round of `run_instructions` */
    FAR = 60 * BLOCK, /* more than any core looks ahead */
    NEAREST = 6 * BLOCK,
    NEAR_STEP = 4 * BLOCK,
    NEAR_COUNT = 12,
    ADDS = 20000,        /* to one line */
    PATIENCE = 1 << 16,  /* looks at a word before the core is given to somebody else */
    MOST_REPEATS = 1000, /* one repeat takes about 40 ms */
};

/* So far from the next one that no prefetcher brings it along, and not all in one set of the cache. */
typedef struct {
    _Alignas(64) atomic_int count;
    char space[4096 + 256 - sizeof(atomic_int)];
} spaced;

static _Alignas(128) atomic_int_fast64_t turn;
static _Alignas(128) atomic_int_fast64_t contended;
static spaced moved[LINES], own[2][LINES];
static const int order[LINES] = {0, 7, 14, 5, 12, 3, 10, 1, 8, 15, 6, 13, 4, 11, 2, 9}; /* that no prefetcher knows */
static volatile uint64_t result; /* of what must not be left out */

/* What one of two threads does, and what it took in ns by `clock` from the moment when both were ready. */
typedef struct {
    int number, cpu;
    void (*work)(void *);
    int64_t amount;
    int distance; /* of an add in a turn from the one before, in instructions; 0: no adds */
    bool moves;   /* whether the lines are those that the other one adds to */
    bool alone;   /* whether the core does nothing else until an add is done */
    pthread_barrier_t *ready;
    clockid_t clock;
    double ns;
} job;

static void fail(const char *what, int error) {
    fprintf(stderr, "handover: %s: %s\n", what, strerror(error));
    exit(1);
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail("a thread can't be bound to its core", errno);
}

/* The core does nothing that comes after this before all that comes before is done. */
static void stop_speculation(void) {
#ifdef __x86_64__
    __builtin_ia32_lfence();
#endif
}

static uint64_t scramble(uint64_t x) {
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

/* Each is one instruction: the compiler can't know what is in the register after it. */
#define ADD_ONE(x)                                                                                                     \
    x++;                                                                                                               \
    __asm__ volatile("" : "+r"(x))
#define ADD_FOUR                                                                                                       \
    ADD_ONE(a);                                                                                                        \
    ADD_ONE(b);                                                                                                        \
    ADD_ONE(c);                                                                                                        \
    ADD_ONE(d)

/* About `count` instructions, four at a time: 16 in a round, and two for the loop. */
static void run_instructions(int count) {
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (; count >= BLOCK; count -= BLOCK) {
        ADD_FOUR;
        ADD_FOUR;
        ADD_FOUR;
        ADD_FOUR;
    }
}

static void take_turns(void *given) {
    job *j = given;
    spaced *lines = j->moves ? moved : own[j->number];
    for (int64_t k = 0; k < j->amount; k++) {
        /* Acquire, for the other's release below: its adds to the moved lines are done before ours begin. */
        for (int looks = 0; atomic_load_explicit(&turn, memory_order_acquire) != 2 * k + j->number;)
            if (++looks % PATIENCE == 0)
                sched_yield();
        /* A core that guesses the end of its waiting would fetch the lines while the other one still works on them. */
        stop_speculation();
        for (int m = 0; j->distance > 0 && m < LINES; m++) {
            run_instructions(j->distance);
            /* Relaxed: nothing is read from these; the order is that of `turn`. */
            atomic_fetch_add_explicit(&lines[order[m]].count, 1, memory_order_relaxed);
            if (j->alone)
                stop_speculation();
        }
        /* Release, for the other's acquire above. */
        atomic_store_explicit(&turn, 2 * k + j->number + 1, memory_order_release);
    }
}

static void add(void *given) {
    const job *j = given;
    for (int64_t k = 0; k < j->amount; k++)
        /* Relaxed: a count that orders nothing; it is a locked instruction all the same. */
        atomic_fetch_add_explicit(&contended, 1, memory_order_relaxed);
}

static void compute(void *given) {
    const job *j = given;
    uint64_t x = 1 + (uint64_t)j->number;
    for (int64_t k = 0; k < j->amount; k++)
        x = scramble(x);
    result = x;
}

static void *start(void *given) {
    job *j = given;
    pin(j->cpu);
    pthread_barrier_wait(j->ready);
    double begun = now(j->clock);
    j->work(j);
    j->ns = now(j->clock) - begun;
    return NULL;
}

/* The mean time that `threads` threads, 1 or 2, took to do `what` each. */
static double run(job what, const int *cpus, int threads) {
    pthread_barrier_t ready;
    pthread_t handles[2];
    job jobs[2];
    /* Relaxed: the threads that look at it are not yet made. */
    atomic_store_explicit(&turn, 0, memory_order_relaxed);
    pthread_barrier_init(&ready, NULL, (unsigned)threads);
    for (int k = 0; k < threads; k++) {
        jobs[k] = what;
        jobs[k].number = k;
        jobs[k].cpu = cpus[k];
        jobs[k].ready = &ready;
        int error = pthread_create(&handles[k], NULL, start, &jobs[k]);
        if (error != 0)
            fail("a thread can't be made", error);
    }
    double ns = 0;
    for (int k = 0; k < threads; k++) {
        pthread_join(handles[k], NULL);
        ns += jobs[k].ns / threads;
    }
    pthread_barrier_destroy(&ready);
    return ns;
}

static void print(const char *name, const double *values, int count, const char *end) {
    printf("\"%s\": [", name);
    for (int k = 0; k < count; k++)
        printf("%s%.6g", k ? ", " : "", values[k]);
    printf("]%s", end);
}

/* The time of a turn that `what` describes, of either thread. */
static double time_turn(job what, const int *cpus) {
    what.work = take_turns;
    what.amount = TURNS;
    what.clock = CLOCK_MONOTONIC;
    return run(what, cpus, 2) / TURNS / 2;
}

/* What an add to a moved line takes longer than one to an own line. */
static double time_handover(int distance, bool alone, const int *cpus) {
    double moves = time_turn((job){.distance = distance, .alone = alone, .moves = true}, cpus);
    return (moves - time_turn((job){.distance = distance, .alone = alone}, cpus)) / LINES;
}

static void costs(const int *cpus, int repeats) {
    static double handover[MOST_REPEATS], far[MOST_REPEATS], near[NEAR_COUNT][MOST_REPEATS], one_way[MOST_REPEATS],
        alone[MOST_REPEATS], both[MOST_REPEATS];
    job adding = {.work = add, .amount = ADDS, .clock = CLOCK_MONOTONIC};
    for (int k = 0; k < repeats; k++) {
        handover[k] = time_handover(FAR, true, cpus);
        far[k] = time_handover(FAR, false, cpus);
        for (int n = 0; n < NEAR_COUNT; n++)
            near[n][k] = time_handover(NEAREST + n * NEAR_STEP, false, cpus);
        one_way[k] = time_turn((job){.distance = 0}, cpus);
        alone[k] = run(adding, cpus, 1) / ADDS;
        both[k] = run(adding, cpus, 2) / ADDS / 2;
    }
    printf("{");
    print("handover", handover, repeats, ",\n ");
    print("far", far, repeats, ",\n ");
    printf("\"near\": {");
    for (int n = 0; n < NEAR_COUNT; n++) {
        char distance[16];
        snprintf(distance, sizeof distance, "%d", NEAREST + n * NEAR_STEP);
        print(distance, near[n], repeats, n + 1 < NEAR_COUNT ? ",\n  " : "},\n ");
    }
    print("one_way", one_way, repeats, ",\n ");
    print("own_add", alone, repeats, ",\n ");
    print("contended_add", both, repeats, "}\n");
}

static void control(const int *cpus, int64_t steps, int repeats) {
    double one[MOST_REPEATS], two[MOST_REPEATS];
    job computing = {.work = compute, .amount = steps, .clock = CLOCK_THREAD_CPUTIME_ID};
    for (int k = 0; k < repeats; k++) {
        one[k] = run(computing, cpus, 1) / (double)steps;
        two[k] = run(computing, cpus, 2) / (double)steps;
    }
    printf("{");
    print("one", one, repeats, ",\n ");
    print("two", two, repeats, "}\n");
}

/* A whole number from `least` to `most`. */
static int64_t number(const char *text, int64_t least, int64_t most) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < least || value > most) {
        fprintf(stderr, "handover: %s is no number from %lld to %lld\n", text, (long long)least, (long long)most);
        exit(1);
    }
    return value;
}

int main(int argc, char **argv) {
    bool is_costs = argc == 5 && strcmp(argv[1], "costs") == 0;
    bool is_control = argc == 6 && strcmp(argv[1], "control") == 0;
    if (!is_costs && !is_control) {
        fprintf(stderr, "usage: handover costs CPU CPU REPEATS | handover control CPU CPU STEPS REPEATS\n");
        return 1;
    }
    int cpus[2] = {(int)number(argv[2], 0, CPU_SETSIZE - 1), (int)number(argv[3], 0, CPU_SETSIZE - 1)};
    if (cpus[0] == cpus[1]) {
        fprintf(stderr, "handover: not measurable: a line can't move between core %d and itself\n", cpus[0]);
        return 1;
    }
    int repeats = (int)number(argv[argc - 1], 1, MOST_REPEATS);
    if (is_costs)
        costs(cpus, repeats);
    else
        control(cpus, number(argv[4], 1, INT64_MAX), repeats);
    return 0;
}
