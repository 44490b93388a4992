/* Replays what the threads of a census did to shared lines on model cores, and says how long they wait for each other.
 *
 *     replay HANDOVER_NS HOLD_NS KEEP_NS AHEAD NS_PER_INSTRUCTION PASSES CORES[,CORES...] < TRACES
 *
 * The input is a list of whole numbers between white space:
 *     number of lines, number of traces;
 *     for each line: 1 when it is truly shared, else 0;
 *     for each trace: its instructions, its number of steps, and for each step: the instructions since the step before,
 *     the line (from 0), and 0 for a read, 1 for a write, 2 for a locked write.
 *
 * Core c replays trace c modulo their number, from a place of its own, again and again.  The replay ends when the first
 * core has done PASSES traces.  One JSON object goes to standard output; the same input always gives the same output.
 *
 * A truly shared line is one line for all cores.  Any other one ("false sharing") is a line of its own for each group
 * of as many cores as there are traces: more threads would have data of their own beside each other.
 *
 * The rules, after MESI: a core that holds a line for reading or for writing reads at no cost; one that holds it for
 * writing writes at no cost.  Otherwise it asks for the line and has it HANDOVER_NS later.  A line serves one such
 * request at a time, in the order of asking, and stays HOLD_NS with a core that got it for writing; reads of a line
 * that no core holds for writing are served side by side.  Until KEEP_NS after a request began to be served, the cores
 * that must give the line up go on using it.
 *
 * A core begins its instructions one after the other, NS_PER_INSTRUCTION each, and asks for a line when it begins the
 * access, at once for writing when a write to it is in sight.  It finishes them in the same order: a read or a locked
 * write when the line is there, a locked write not before the core's earlier writes have their lines.  It can't begin
 * an instruction before it has finished the one that lies AHEAD before; so while it waits for one line, it asks for the
 * next ones that are near.  At the start every line is held for reading by all who share it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CORES = 64, MAX_TRACES = 64, MAX_COUNTS = 64, HISTORY = 1024 };

enum kind { READ, WRITE, LOCKED, NOTHING };

typedef struct {
    uint64_t instructions; /* since the step before */
    uint32_t line;
    enum kind kind;
} step;

typedef struct {
    step *steps;
    size_t count;
    uint64_t instructions;
} trace;

typedef struct {
    bool *truly_shared;
    size_t count;
    size_t group; /* of cores that share each of the other lines: as many as there are traces */
} lines;

typedef struct {
    int owner;                     /* the last core that asked for writing, or -1 after somebody asked for reading */
    double free_at;                /* when the next request is served */
    double reads_until[MAX_CORES]; /* until when a core may use what it has */
    double writes_until[MAX_CORES];
} state;

typedef struct {
    double wait_ns, busy_ns;
    uint64_t transfers;
} cost;

typedef struct {
    size_t next;           /* step */
    size_t left;           /* steps until it has done all its passes */
    uint64_t instructions; /* before that step */
    double begins;         /* when it begins that step and asks for the line */
    double finished;       /* when the step before was finished */
    uint32_t line;         /* that it was last waited for */
    struct {
        uint64_t instructions;
        double finished;
        uint32_t line;
    } history[HISTORY]; /* of the steps from `oldest` to `done`, modulo HISTORY, that may yet keep it from beginning */
    uint64_t oldest, done;
    double drained; /* when its earlier writes are done, .. */
    uint32_t drain; /* .. and the line that the last of them waits for */
} core;

typedef struct {
    double handover, hold, keep, instruction; /* ns */
    uint64_t ahead;                           /* instructions */
    size_t passes;
} model;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "replay: %s: %s\n", what, why);
    exit(1);
}

static void *array(size_t count, size_t size) {
    void *made = calloc(count ? count : 1, size);
    if (made == NULL)
        fail("memory", "there is not enough");
    return made;
}

/* The finaliser of SplitMix64, as a hash. */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The next number of the input, at most `most`. */
static uint64_t next(uint64_t most, const char *what) {
    uint64_t value;
    if (scanf("%" SCNu64, &value) != 1 || value > most)
        fail("input", what);
    return value;
}

/* A trace, with a last step that does nothing for the time after the last access. */
static trace read_trace(size_t lines) {
    trace t = {.instructions = next(UINT64_C(1) << 53, "no number of instructions")};
    size_t steps = next(lines ? UINT32_MAX : 0, "no number of steps, or steps without a line");
    uint64_t left = t.instructions;
    t.steps = array(steps + 1, sizeof(step));
    for (; t.count < steps; t.count++) {
        step *s = &t.steps[t.count];
        s->instructions = next(left, "no number of instructions, or more than the trace has");
        s->line = (uint32_t)next(lines - 1, "no such line");
        s->kind = (enum kind)next(LOCKED, "no such kind of access");
        left -= s->instructions;
    }
    t.steps[t.count++] = (step){left, 0, NOTHING};
    if (t.instructions == 0)
        fail("input", "a trace without instructions");
    return t;
}

static double later(double a, double b) { return a > b ? a : b; }

static void shorten(double *until, double end) {
    if (end < *until)
        *until = end;
}

/* Core `c` of `cores` asks for the line at `now`; returns when it has it. */
static double ask(const model *m, state *s, cost *spent, size_t cores, size_t c, double now, bool to_write) {
    double start = later(now, s->free_at), done = start + m->handover, leave = start + m->keep;
    s->reads_until[c] = HUGE_VAL;
    if (!to_write && s->owner < 0)
        return done;
    spent->transfers++;
    if (to_write) {
        for (size_t other = 0; other < cores; other++)
            if (other != c) {
                shorten(&s->reads_until[other], leave);
                shorten(&s->writes_until[other], leave);
            }
        s->writes_until[c] = HUGE_VAL;
        s->owner = (int)c;
        s->free_at = done + m->hold;
    } else {
        shorten(&s->writes_until[s->owner], leave);
        s->owner = -1;
        s->free_at = done;
    }
    spent->busy_ns += s->free_at - start;
    return done;
}

/* Whether a write to the line of step `at` is in sight of it. */
static bool write_in_sight(const model *m, const trace *t, size_t at) {
    uint64_t way = 0;
    for (size_t k = (at + 1) % t->count; k != at; k = (k + 1) % t->count) {
        way += t->steps[k].instructions;
        if (way > m->ahead)
            return false;
        if (t->steps[k].line == t->steps[at].line && (t->steps[k].kind == WRITE || t->steps[k].kind == LOCKED))
            return true;
    }
    return false;
}

/* Core `c` does its next step, on the line of state `s`. */
static void act(const model *m, const trace *t, core *self, state *s, cost *costs, size_t cores, size_t c) {
    const step *what = &t->steps[self->next];
    double now = self->begins, ready = now;
    if (what->kind == READ && now >= s->reads_until[c])
        ready = ask(m, s, &costs[what->line], cores, c, now, write_in_sight(m, t, self->next));
    if (what->kind != READ && now >= s->writes_until[c])
        ready = ask(m, s, &costs[what->line], cores, c, now, true);
    if (what->kind == WRITE) {
        if (ready > self->drained) {
            self->drained = ready;
            self->drain = what->line;
        }
        return;
    }
    if (what->kind == LOCKED && self->drained > self->finished) {
        self->finished = self->drained;
        self->line = self->drain;
    }
    if (ready > self->finished) {
        self->finished = ready;
        self->line = what->line;
    }
}

/* Core `self` turns from a step to the next one. */
static void advance(const model *m, const trace *t, core *self, cost *costs) {
    size_t at = (size_t)(self->done++ % HISTORY);
    self->history[at].instructions = self->instructions;
    self->history[at].finished = self->finished;
    self->history[at].line = self->line;
    self->next = (self->next + 1) % t->count;
    self->instructions += t->steps[self->next].instructions;
    self->begins += (double)t->steps[self->next].instructions * m->instruction;
    for (; self->oldest < self->done; self->oldest++) {
        at = (size_t)(self->oldest % HISTORY);
        uint64_t from = self->history[at].instructions + m->ahead;
        if (from > self->instructions && self->done - self->oldest < HISTORY)
            break;
        double way = from < self->instructions ? (double)(self->instructions - from) * m->instruction : 0;
        double begins = self->history[at].finished + way;
        if (begins > self->begins) {
            costs[self->history[at].line].wait_ns += begins - self->begins;
            self->begins = begins;
        }
    }
}

/* The states of all lines: one for each truly shared line, else one for each group of cores; `first` says where. */
static state *make_states(const lines *l, size_t cores, size_t *first) {
    size_t groups = (cores + l->group - 1) / l->group, total = 0;
    state *states = array(l->count * groups, sizeof(state));
    for (size_t k = 0; k < l->count; k++) {
        first[k] = total;
        size_t copies = l->truly_shared[k] ? 1 : groups, sharers = l->truly_shared[k] ? cores : l->group;
        for (size_t g = 0; g < copies; g++, total++) {
            states[total].owner = -1;
            size_t from = g * sharers, to = from + sharers < cores ? from + sharers : cores;
            for (size_t c = from; c < to; c++) {
                states[total].reads_until[c] = HUGE_VAL;
                /* Who shares with nobody may write as well. */
                states[total].writes_until[c] = to - from == 1 ? HUGE_VAL : 0;
            }
        }
    }
    return states;
}

static void replay(const model *m, const trace *traces, const lines *l, size_t cores) {
    size_t *first = array(l->count, sizeof(size_t));
    state *states = make_states(l, cores, first);
    cost *costs = array(l->count, sizeof(cost));
    core *all = array(cores, sizeof(core));
    for (size_t c = 0; c < cores; c++) {
        const trace *t = &traces[c % l->group];
        all[c].next = (size_t)(mix(c) % t->count);
        all[c].left = m->passes * t->count;
        all[c].instructions = t->steps[all[c].next].instructions;
        all[c].begins = (double)all[c].instructions * m->instruction;
    }
    double end = 0;
    for (bool running = true; running;) {
        size_t c = 0;
        for (size_t other = 1; other < cores; other++)
            if (all[other].begins < all[c].begins)
                c = other;
        core *self = &all[c];
        const trace *t = &traces[c % l->group];
        const step *what = &t->steps[self->next];
        self->finished = later(self->finished, self->begins);
        if (what->kind != NOTHING) {
            size_t copy = l->truly_shared[what->line] ? 0 : c / l->group;
            act(m, t, self, &states[first[what->line] + copy], costs, cores, c);
        }
        running = --self->left > 0;
        if (running)
            advance(m, t, self, costs);
        else
            end = self->finished;
    }
    double instructions = 0; /* that all cores began until `end` */
    for (size_t c = 0; c < cores; c++) {
        double step = (double)traces[c % l->group].steps[all[c].next].instructions;
        double to_come = later(0, all[c].begins - end) / m->instruction;
        instructions += (double)all[c].instructions - (to_come < step ? to_come : step);
    }
    printf("{\"cores\": %zu, \"ns\": %.17g, \"instructions\": %.17g, \"lines\": [", cores, end, instructions);
    for (size_t k = 0; k < l->count; k++)
        printf("%s{\"wait_ns\": %.17g, \"busy_ns\": %.17g, \"transfers\": %" PRIu64 ", \"copies\": %zu}", k ? ", " : "",
               costs[k].wait_ns, costs[k].busy_ns, costs[k].transfers,
               l->truly_shared[k] ? 1 : (cores + l->group - 1) / l->group);
    printf("]}");
    free(all);
    free(costs);
    free(states);
    free(first);
}

static double nanoseconds(const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < 0)
        fail(text, "no time in nanoseconds");
    return value;
}

static size_t whole(const char *text, unsigned long least, unsigned long most) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > most)
        fail(text, "no whole number in its range");
    return value;
}

int main(int argc, char **argv) {
    if (argc != 8)
        fail("usage", "replay HANDOVER_NS HOLD_NS KEEP_NS AHEAD NS_PER_INSTRUCTION PASSES CORES[,CORES...] < TRACES");
    model m = {.handover = nanoseconds(argv[1]),
               .hold = nanoseconds(argv[2]),
               .keep = nanoseconds(argv[3]),
               .ahead = whole(argv[4], 0, 1000000),
               .instruction = nanoseconds(argv[5]),
               .passes = whole(argv[6], 1, 1000000)};
    if (m.instruction <= 0)
        fail(argv[5], "an instruction must take time");
    size_t cores[MAX_COUNTS], counts = 0;
    for (char *text = strtok(argv[7], ","); text != NULL; text = strtok(NULL, ",")) {
        if (counts == MAX_COUNTS)
            fail(text, "too many numbers of cores");
        cores[counts++] = whole(text, 1, MAX_CORES);
    }

    lines l = {.count = next(UINT32_MAX, "no number of lines"), .group = next(MAX_TRACES, "no number of traces")};
    if (l.group == 0)
        fail("input", "no trace");
    l.truly_shared = array(l.count, sizeof(bool));
    for (size_t k = 0; k < l.count; k++)
        l.truly_shared[k] = next(1, "neither 1 nor 0 for a line") == 1;
    trace traces[MAX_TRACES];
    for (size_t t = 0; t < l.group; t++)
        traces[t] = read_trace(l.count);

    printf("[");
    for (size_t k = 0; k < counts; k++) {
        printf("%s", k ? ",\n " : "");
        replay(&m, traces, &l, cores[k]);
    }
    printf("]\n");
    for (size_t t = 0; t < l.group; t++)
        free(traces[t].steps);
    free(l.truly_shared);
    if (fflush(stdout) != 0)
        fail("standard output", "can't be written");
    return 0;
}
