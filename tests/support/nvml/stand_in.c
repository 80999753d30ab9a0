/* A stand-in for NVIDIA's NVML on a machine without a GPU.
 *
 * The programs under test find it as libnvidia-ml.so.1 through the dynamic loader, so that the real Python bindings run
 * whole: their ctypes declarations, their array protocol, their exceptions. What there is to see stands in a text file,
 * named by NVML_STAND_IN_STATE and read anew at every call: a test may change it (by rename) under a running program.
 * To the file that NVML_STAND_IN_LOG names, every call appends the name of its function.
 *
 *     driver 570.86.15        the driver's version; also `nvml`, `cuda` (12080 is 12.8)
 *     now SECONDS             since the epoch, instead of the machine's clock
 *     init_error 18           nvmlInit fails with this NVML code
 *     error FUNCTION CODE     this function fails so, whatever it is asked about; `*` is every function
 *     delay_us FUNCTION N     this function takes so long
 *     hang FUNCTION 1         this function takes until the file is another one
 *     gpu                     begins a GPU; what stands above the first one is about the machine
 *     uuid GPU-...            also `name`, `bus` (00000000:01:00.0)
 *     total BYTES             also `reserved`, `used`; version 1 of the memory counts what is reserved as used
 *     utilization PERCENT     also `temperature`, `power` and `power_limit` (milliwatts), `fan`, `compute_mode`;
 *                             a GPU without the line does not support the question
 *     memory_utilization PERCENT
 *                             of the memory's time; 0 without the line, if there is one of `utilization`
 *     energy MILLIJOULES      since the driver was loaded
 *     clock MHZ               of graphics and of the SMs, and `memory_clock`
 *     throttle MASK           the reasons for which the clocks are as they are, as a decimal number
 *     pcie_tx KB_A_SECOND     what the GPU sends, and `pcie_rx` what it gets; `pcie_tx_bytes`, `pcie_rx_bytes` count it
 *     nvlink_tx_kib KIB       counts what the GPU has sent through all of its links, and `nvlink_rx_kib` what it got
 *     events MASK             the types of events that it tells of: 8 is XIDs, errors that have a number
 *     xid NUMBER COUNT        how many of these there were; a set of events tells of those after the GPU came to it
 *     process PID BYTES [SM]  a process that computes, `graphics` one that draws, `mps` one that computes through MPS;
 *                             BYTES may be `-`: unknown; SM is its part of the utilization, in percent
 *     error FUNCTION CODE     for this GPU only; also `delay_us`, `hang`
 *     mig 0|1                 without the line the GPU knows no MIG
 *     instance                begins a MIG instance of this GPU, with `uuid`, `name`, `gi`, `ci`, `total`, `reserved`,
 *                             `used`, processes, `error`, `delay_us`, `hang`
 *
 * A number of a device may depend on the time at which the call began; whole units are given, and never less than 0:
 *
 *     energy 5000 + 250000 / s since 1760000000.5     the number, and so many more a second from then on (or fewer: -2)
 *     utilization at 1760000000.5 0 10 80 25 0        0 for 10 s from then on and before, then 80 for 25 s, then 0
 *
 * Seconds and what comes in one are decimal fractions of up to nine places; what is behind these is not looked at.
 *
 * The lines are looked up in the text as they are; nothing is kept between two calls but the count of initialisations,
 * the handles and what each set of events has told, so that calls from several threads have nothing else to share.
 *
 * A call that waits for events looks at the file again and again. When there is nothing to tell, it fails as `error`
 * above the first GPU or at one of the set says, or with a lost GPU if one of these is gone.
 *
 * With -DPROTECTED_MEMORY_IN_V3 it is one of the drivers 535.43 to 535.86, whose process entries were longer.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN = 999,
};

enum { WORD = 96, LINE = 4096, MIG_DEVICES_MAX = 7, NO_INSTANCE = -1 };

static const unsigned long long NOT_AVAILABLE = ~0ULL;

/* ---- What stands in the file ------------------------------------------------------------------------------------ */

/* Whole lines of the state. */
struct lines {
    const char *from, *to;
};

/* The first word of a line, and what follows. */
struct line {
    char word[WORD], rest[LINE];
    const char *start;
};

static void copy(char *to, size_t size, const char *from, const char *end)
{
    size_t length = (size_t)(end - from);
    if (length >= size)
        length = size - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* Takes the next line that says something; comments and empty lines do not. */
static bool take(struct lines *left, struct line *line)
{
    while (left->from < left->to) {
        const char *from = left->from;
        const char *end = memchr(from, '\n', (size_t)(left->to - from));
        if (!end)
            end = left->to;
        left->from = end < left->to ? end + 1 : end;
        line->start = from;
        while (from < end && (*from == ' ' || *from == '\t'))
            from++;
        if (from == end || *from == '#')
            continue;
        const char *word = from;
        while (from < end && *from != ' ' && *from != '\t')
            from++;
        copy(line->word, sizeof line->word, word, from);
        while (from < end && (*from == ' ' || *from == '\t'))
            from++;
        copy(line->rest, sizeof line->rest, from, end);
        return true;
    }
    return false;
}

/* Takes the next line that begins with this word. */
static bool take_word(struct lines *left, const char *word, struct line *line)
{
    while (take(left, line))
        if (strcmp(line->word, word) == 0)
            return true;
    return false;
}

/* The lines above the first one that begins with this word. */
static struct lines above(struct lines whole, const char *word)
{
    struct lines left = whole;
    struct line line;
    if (take_word(&left, word, &line))
        whole.to = line.start;
    return whole;
}

/* Takes the next part that is headed by this word. */
static bool take_part(struct lines *left, const char *word, struct lines *part)
{
    struct line line;
    if (!take_word(left, word, &line))
        return false;
    *part = above(*left, word);
    left->from = part->to;
    return true;
}

static bool text_of(struct lines lines, const char *word, char *text, size_t size)
{
    struct line line;
    if (!take_word(&lines, word, &line))
        return false;
    copy(text, size, line.rest, line.rest + strlen(line.rest));
    return true;
}

static bool to_number(const char *text, unsigned long long *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

/* Times are in nanoseconds, so that they are exact where doubles are not; what comes in a second is in billionths. */
typedef __int128 wide;

enum { PLACES = 9 };
static const wide BILLION = 1000000000;

static bool to_billionths(const char *text, wide *value)
{
    const wide limit = BILLION * BILLION * BILLION;
    bool is_negative = *text == '-', has_point = false;
    int digits = 0, places = 0;
    *value = 0;
    for (text += is_negative; *text; text++) {
        if (*text == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (!isdigit((unsigned char)*text) || *value > limit)
            return false;
        digits++;
        if (places == PLACES)
            continue;
        *value = *value * 10 + (*text - '0');
        places += has_point;
    }
    for (; places < PLACES; places++)
        *value *= 10;
    if (is_negative)
        *value = -*value;
    return digits > 0;
}

/* START + RATE / s since SECONDS */
static bool to_ramp(const char *text, wide now, unsigned long long *number)
{
    char start_word[WORD], rate_word[WORD], since_word[WORD];
    unsigned long long start;
    wide rate, since, value;
    int end = 0;
    if (sscanf(text, "%95s + %95s / s since %95s%n", start_word, rate_word, since_word, &end) != 3 || text[end] != '\0')
        return false;
    if (!to_number(start_word, &start) || !to_billionths(rate_word, &rate) || !to_billionths(since_word, &since))
        return false;
    if (__builtin_mul_overflow(rate, now > since ? now - since : 0, &value) ||
        __builtin_add_overflow(value, start * BILLION * BILLION, &value))
        return false;
    value = value > 0 ? value / BILLION / BILLION : 0;
    *number = (unsigned long long)value;
    return value <= ~0ULL;
}

/* at SECONDS VALUE [SECONDS VALUE]... */
static bool to_step(char *text, wide now, unsigned long long *number)
{
    char *left;
    const char *at = strtok_r(text, " ", &left), *word = strtok_r(NULL, " ", &left);
    unsigned long long value;
    wide moment, length;
    bool is_found = false;
    if (!at || strcmp(at, "at") != 0 || !word || !to_billionths(word, &moment))
        return false;
    for (;;) {
        if (!(word = strtok_r(NULL, " ", &left)) || !to_number(word, &value))
            return false;
        if (!is_found)
            *number = value;
        if (!(word = strtok_r(NULL, " ", &left)))
            return true;
        if (!to_billionths(word, &length) || length < 0)
            return false;
        moment += length;
        is_found = is_found || now < moment;
    }
}

static bool to_number_at(const char *text, wide now, unsigned long long *number)
{
    char words[LINE];
    if (to_number(text, number) || to_ramp(text, now, number))
        return true;
    /* A longer line may have been cut where it is still one of steps. */
    if (strlen(text) == LINE - 1)
        return false;
    strcpy(words, text);
    return to_step(words, now, number);
}

/* What a line `error FUNCTION NUMBER` or `delay_us FUNCTION NUMBER` says about a function; 0 is nothing. */
static unsigned long long scripted(struct lines lines, const char *word, const char *function)
{
    struct line line;
    while (take_word(&lines, word, &line)) {
        struct lines rest = {line.rest, line.rest + strlen(line.rest)};
        struct line said;
        unsigned long long number;
        if (!take(&rest, &said) || strcmp(said.word, function) != 0)
            continue;
        return to_number(said.rest, &number) ? number : UNKNOWN;
    }
    return 0;
}

/* The whole file, which is the caller's; NULL when there is none. */
static char *read_state(size_t *length)
{
    const char *path = getenv("NVML_STAND_IN_STATE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    size_t size = 0;
    char *text = NULL;
    *length = 0;
    if (file < 0)
        return NULL;
    for (;;) {
        if (*length + 1 >= size) {
            char *larger = realloc(text, size = size ? 2 * size : 8192);
            if (!larger)
                break;
            text = larger;
        }
        ssize_t got = read(file, text + *length, size - *length - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            close(file);
            text[*length] = '\0';
            return text;
        }
        *length += (size_t)got;
    }
    close(file);
    free(text);
    return NULL;
}

/* ---- Handles ---------------------------------------------------------------------------------------------------- */

/* A handle stays with its device when others come or go, as the real one does; so it is known by its UUID. */
struct device {
    char uuid[WORD];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[1024];
static size_t devices_known;
static unsigned initialisations;

static struct device *handle_of(const char *uuid)
{
    struct device *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < devices_known && !found; i++)
        if (strcmp(devices[i].uuid, uuid) == 0)
            found = &devices[i];
    if (!found && devices_known < sizeof devices / sizeof *devices) {
        found = &devices[devices_known++];
        copy(found->uuid, sizeof found->uuid, uuid, uuid + strlen(uuid));
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool is_handle(const struct device *device)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < devices_known && !found; i++)
        found = device == &devices[i];
    pthread_mutex_unlock(&lock);
    return found;
}

static bool is_initialised(void)
{
    pthread_mutex_lock(&lock);
    bool is = initialisations > 0;
    pthread_mutex_unlock(&lock);
    return is;
}

/* ---- One call --------------------------------------------------------------------------------------------------- */

struct call {
    const char *function;
    int result;
    char *text;              /* of the file */
    wide now;
    struct lines machine;    /* what is above the first GPU */
    struct lines gpus;
    struct lines gpu;        /* without its instances */
    struct lines instances;
    struct lines own;        /* of what is asked about: the GPU or the instance */
    unsigned gpu_index;
    int instance_index;
};

static void forget(struct call *call)
{
    free(call->text);
}

/* A line that is missing is a question that is not supported; one that is no number is a mistake of the test. */
static int number_of(const struct call *call, struct lines lines, const char *word, unsigned long long *number)
{
    struct line line;
    if (!take_word(&lines, word, &line))
        return NOT_SUPPORTED;
    return to_number_at(line.rest, call->now, number) ? SUCCESS : UNKNOWN;
}

static int own_number(const struct call *call, const char *word, unsigned long long *number)
{
    return number_of(call, call->own, word, number);
}

static void log_call(const char *function)
{
    const char *path = getenv("NVML_STAND_IN_LOG");
    char line[WORD + 1];
    int length = snprintf(line, sizeof line, "%s\n", function);
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (file < 0)
        return;
    while (write(file, line, (size_t)length) < 0 && errno == EINTR)
        ;
    close(file);
}

static void wait_us(unsigned long long microseconds)
{
    struct timespec left = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000 * 1000)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* What the machine, the GPU or the instance says about this function. What a GPU says about one function is about the
 * GPU alone; what it says about all of them, as one that is lost does, is about its instances too. */
static unsigned long long said_about(const struct call *call, const char *word)
{
    struct {
        struct lines lines;
        bool by_name;
    } places[] = {{call->own, true}, {call->gpu, call->instance_index == NO_INSTANCE}, {call->machine, true}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        unsigned long long number = places[i].by_name ? scripted(places[i].lines, word, call->function) : 0;
        if (!number)
            number = scripted(places[i].lines, word, "*");
        if (number)
            return number;
    }
    return 0;
}

/* As a driver in trouble does: until the test shows something else. */
static void hang(const struct call *call)
{
    for (bool is_same = true; is_same;) {
        size_t length;
        wait_us(5000);
        char *text = read_state(&length);
        is_same = text && strcmp(text, call->text) == 0;
        free(text);
    }
}

static int refusal(const struct call *call)
{
    if (said_about(call, "hang"))
        hang(call);
    unsigned long long delay = said_about(call, "delay_us");
    if (delay)
        wait_us(delay);
    return (int)said_about(call, "error");
}

/* The machine's clock, or the one that the test shows. */
static bool read_clock(struct lines machine, wide *now)
{
    char shown[WORD];
    struct timespec time;
    if (text_of(machine, "now", shown, sizeof shown))
        return to_billionths(shown, now);
    clock_gettime(CLOCK_REALTIME, &time);
    *now = time.tv_sec * BILLION + time.tv_nsec;
    return true;
}

static struct call look(const char *function, bool needs_initialisation)
{
    struct call call = {.function = function, .instance_index = NO_INSTANCE};
    size_t length;
    call.text = read_state(&length);
    if (!call.text) {
        call.result = needs_initialisation && !is_initialised() ? UNINITIALIZED : DRIVER_NOT_LOADED;
        return call;
    }
    struct lines whole = {call.text, call.text + length};
    call.machine = above(whole, "gpu");
    call.gpus = (struct lines){call.machine.to, whole.to};
    if (needs_initialisation && !is_initialised())
        call.result = UNINITIALIZED;
    else if (!read_clock(call.machine, &call.now))
        call.result = UNKNOWN;
    return call;
}

static struct call about_machine(const char *function, bool needs_initialisation)
{
    log_call(function);
    return look(function, needs_initialisation);
}

/* Takes the next GPU of the file into the call. */
static bool take_gpu(struct call *call, struct lines *left)
{
    struct lines part;
    if (!take_part(left, "gpu", &part))
        return false;
    call->gpu = call->own = above(part, "instance");
    call->instances = (struct lines){call->gpu.to, part.to};
    call->instance_index = NO_INSTANCE;
    return true;
}

static bool seek_gpu(struct call *call, unsigned index)
{
    struct lines left = call->gpus;
    for (call->gpu_index = 0; take_gpu(call, &left); call->gpu_index++)
        if (call->gpu_index == index)
            return true;
    return false;
}

static bool in_mig_mode(const struct call *call)
{
    unsigned long long mode = 0;
    return number_of(call, call->gpu, "mig", &mode) == SUCCESS && mode == 1;
}

static bool seek_instance(struct call *call, unsigned index)
{
    struct lines left = call->instances;
    for (call->instance_index = 0; take_part(&left, "instance", &call->own); call->instance_index++)
        if (call->instance_index == (int)index)
            return in_mig_mode(call);
    call->own = call->gpu;
    call->instance_index = NO_INSTANCE;
    return false;
}

static bool has_uuid(const struct call *call, const char *uuid)
{
    char own[WORD];
    return text_of(call->own, "uuid", own, sizeof own) && strcmp(own, uuid) == 0;
}

static bool seek_uuid(struct call *call, const char *uuid)
{
    for (unsigned gpu = 0; seek_gpu(call, gpu); gpu++) {
        if (has_uuid(call, uuid))
            return true;
        for (unsigned instance = 0; seek_instance(call, instance); instance++)
            if (has_uuid(call, uuid))
                return true;
    }
    return false;
}

static struct call about_device(const char *function, const struct device *device)
{
    struct call call = about_machine(function, true);
    if (call.result != SUCCESS)
        return call;
    if (!is_handle(device))
        call.result = INVALID_ARGUMENT;
    else if (!seek_uuid(&call, device->uuid))
        call.result = GPU_IS_LOST;
    else
        call.result = refusal(&call);
    return call;
}

static int give_text(const char *text, char *to, unsigned size)
{
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return SUCCESS;
}

static int give_unsigned(const struct call *call, struct lines lines, const char *word, unsigned *to)
{
    unsigned long long number = 0;
    int result = number_of(call, lines, word, &number);
    if (result == SUCCESS)
        *to = (unsigned)number;
    return result;
}

static int give_own(const struct call *call, const char *word, unsigned *to)
{
    return give_unsigned(call, call->own, word, to);
}

static int give_handle(const struct call *call, struct device **handle)
{
    char uuid[WORD];
    int result = (int)said_about(call, "error");
    if (result != SUCCESS)
        return result;
    if (!text_of(call->own, "uuid", uuid, sizeof uuid))
        return UNKNOWN;
    *handle = handle_of(uuid);
    return *handle ? SUCCESS : UNKNOWN;
}

/* For a function that has found out only now which device it is asked about. */
static int give_found(const struct call *call, struct device **handle)
{
    int result = refusal(call);
    return result == SUCCESS ? give_handle(call, handle) : result;
}

/* What every function begins with: the call is counted, what the test has it fail with is returned. */
#define FREED_AT_THE_END struct call call __attribute__((cleanup(forget)))
#define ASKED_ABOUT(handle)                                                                                            \
    FREED_AT_THE_END = about_device(__func__, handle);                                                                 \
    if (call.result != SUCCESS)                                                                                        \
    return call.result
#define ASKED_FOR_A_DEVICE                                                                                             \
    FREED_AT_THE_END = about_machine(__func__, true);                                                                  \
    if (call.result != SUCCESS)                                                                                        \
    return call.result
#define ASKED_ABOUT_THE_MACHINE                                                                                        \
    ASKED_FOR_A_DEVICE;                                                                                                \
    if ((call.result = refusal(&call)) != SUCCESS)                                                                     \
    return call.result

/* ---- The library and the machine -------------------------------------------------------------------------------- */

static int initialise(const char *function)
{
    FREED_AT_THE_END = about_machine(function, false);
    unsigned code = 0;
    if (call.result == SUCCESS)
        give_unsigned(&call, call.machine, "init_error", &code);
    if (call.result == SUCCESS)
        call.result = code ? (int)code : refusal(&call);
    if (call.result != SUCCESS)
        return call.result;
    pthread_mutex_lock(&lock);
    initialisations++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int nvmlInit(void)
{
    return initialise(__func__);
}

int nvmlInit_v2(void)
{
    return initialise(__func__);
}

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return initialise(__func__);
}

int nvmlShutdown(void)
{
    FREED_AT_THE_END = about_machine(__func__, true);
    int result = call.text ? refusal(&call) : SUCCESS;
    if (result != SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (initialisations > 0)
        initialisations--;
    else
        result = UNINITIALIZED;
    pthread_mutex_unlock(&lock);
    return result;
}

const char *nvmlErrorString(int result)
{
    switch (result) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 18: return "Driver/library version mismatch";
    case ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

static int give_version(const struct call *call, const char *word, char *to, unsigned size)
{
    char version[WORD];
    if (!text_of(call->machine, word, version, sizeof version))
        return NOT_SUPPORTED;
    return give_text(version, to, size);
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    ASKED_ABOUT_THE_MACHINE;
    return give_version(&call, "driver", version, length);
}

int nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    ASKED_ABOUT_THE_MACHINE;
    return give_version(&call, "nvml", version, length);
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    ASKED_ABOUT_THE_MACHINE;
    return give_unsigned(&call, call.machine, "cuda", (unsigned *)version);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    ASKED_ABOUT_THE_MACHINE;
    return give_unsigned(&call, call.machine, "cuda", (unsigned *)version);
}

/* ---- Which devices there are ------------------------------------------------------------------------------------ */

static int count_gpus(struct call *call, unsigned *count)
{
    for (*count = 0; seek_gpu(call, *count); ++*count)
        ;
    return SUCCESS;
}

int nvmlDeviceGetCount(unsigned *count)
{
    ASKED_ABOUT_THE_MACHINE;
    return count_gpus(&call, count);
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    ASKED_ABOUT_THE_MACHINE;
    return count_gpus(&call, count);
}

int nvmlDeviceGetHandleByIndex(unsigned index, struct device **handle)
{
    ASKED_FOR_A_DEVICE;
    return seek_gpu(&call, index) ? give_found(&call, handle) : INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **handle)
{
    ASKED_FOR_A_DEVICE;
    return seek_gpu(&call, index) ? give_found(&call, handle) : INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **handle)
{
    ASKED_FOR_A_DEVICE;
    return seek_uuid(&call, uuid) ? give_found(&call, handle) : NOT_FOUND;
}

struct address {
    unsigned domain, bus, device, function;
};

static bool read_address(const char *text, struct address *address)
{
    *address = (struct address){0};
    return sscanf(text, "%x:%x:%x.%x", &address->domain, &address->bus, &address->device, &address->function) >= 3 ||
           (address->domain = 0,
            sscanf(text, "%x:%x.%x", &address->bus, &address->device, &address->function) >= 2);
}

static bool own_address(const struct call *call, struct address *address)
{
    char text[WORD];
    return text_of(call->gpu, "bus", text, sizeof text) && read_address(text, address);
}

static int handle_by_bus(struct call *call, const char *bus, struct device **handle)
{
    struct address wanted, own;
    if (!read_address(bus, &wanted))
        return INVALID_ARGUMENT;
    for (unsigned gpu = 0; seek_gpu(call, gpu); gpu++)
        if (own_address(call, &own) && memcmp(&own, &wanted, sizeof own) == 0)
            return give_found(call, handle);
    return NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId(const char *bus, struct device **handle)
{
    ASKED_FOR_A_DEVICE;
    return handle_by_bus(&call, bus, handle);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, struct device **handle)
{
    ASKED_FOR_A_DEVICE;
    return handle_by_bus(&call, bus, handle);
}

int nvmlDeviceGetIndex(struct device *device, unsigned *index)
{
    ASKED_ABOUT(device);
    *index = call.instance_index == NO_INSTANCE ? call.gpu_index : (unsigned)call.instance_index;
    return SUCCESS;
}

int nvmlDeviceGetMinorNumber(struct device *device, unsigned *number)
{
    ASKED_ABOUT(device);
    if (call.instance_index != NO_INSTANCE)
        return NOT_SUPPORTED;
    *number = call.gpu_index;
    return SUCCESS;
}

int nvmlDeviceGetName(struct device *device, char *name, unsigned length)
{
    char text[WORD];
    ASKED_ABOUT(device);
    return text_of(call.own, "name", text, sizeof text) ? give_text(text, name, length) : NOT_SUPPORTED;
}

int nvmlDeviceGetUUID(struct device *device, char *uuid, unsigned length)
{
    ASKED_ABOUT(device);
    return give_text(device->uuid, uuid, length);
}

struct pci_info {
    char short_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci_info *info)
{
    struct address at;
    ASKED_ABOUT(device);
    if (!own_address(&call, &at))
        return NOT_SUPPORTED;
    *info = (struct pci_info){.domain = at.domain, .bus = at.bus, .device = at.device, .device_id = 0x20b210de};
    snprintf(info->short_bus_id, sizeof info->short_bus_id, "%04X:%02X:%02X.%X", at.domain & 0xffff, at.bus & 0xff,
             at.device & 0xff, at.function & 0xf);
    snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.%X", at.domain, at.bus, at.device, at.function);
    return SUCCESS;
}

/* ---- Memory, load and sensors ----------------------------------------------------------------------------------- */

struct memory {
    unsigned long long total, reserved, free, used;
};

/* A GPU in MIG mode adds up what its instances use. */
static int memory_of(struct call *call, struct memory *memory)
{
    unsigned long long used;
    int result = own_number(call, "total", &memory->total);
    if (result == SUCCESS)
        result = own_number(call, "reserved", &memory->reserved);
    if (result == SUCCESS)
        result = own_number(call, "used", &memory->used);
    if (call->instance_index == NO_INSTANCE)
        for (unsigned i = 0; result == SUCCESS && seek_instance(call, i); i++)
            if ((result = own_number(call, "used", &used)) == SUCCESS)
                memory->used += used;
    memory->free = memory->total - memory->reserved - memory->used;
    return result;
}

struct memory_v1 {
    unsigned long long total, free, used;
};

int nvmlDeviceGetMemoryInfo(struct device *device, struct memory_v1 *memory)
{
    struct memory found;
    ASKED_ABOUT(device);
    int result = memory_of(&call, &found);
    if (result == SUCCESS)
        *memory = (struct memory_v1){found.total, found.free, found.reserved + found.used};
    return result;
}

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory_v2 *memory)
{
    struct memory found;
    ASKED_ABOUT(device);
    if (memory->version != (sizeof *memory | 2U << 24))
        return ARGUMENT_VERSION_MISMATCH;
    int result = memory_of(&call, &found);
    if (result == SUCCESS)
        *memory = (struct memory_v2){memory->version, found.total, found.reserved, found.free, found.used};
    return result;
}

struct utilization {
    unsigned gpu, memory;
};

int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *utilization)
{
    ASKED_ABOUT(device);
    if (in_mig_mode(&call))
        return NOT_SUPPORTED;
    int result = give_own(&call, "utilization", &utilization->gpu);
    if (result != SUCCESS)
        return result;
    utilization->memory = 0;
    result = give_own(&call, "memory_utilization", &utilization->memory);
    return result == NOT_SUPPORTED ? SUCCESS : result;
}

int nvmlDeviceGetTemperature(struct device *device, unsigned sensor, unsigned *temperature)
{
    ASKED_ABOUT(device);
    return sensor == 0 ? give_own(&call, "temperature", temperature) : INVALID_ARGUMENT;
}

struct temperature {
    unsigned version, sensor;
    int temperature;
};

int nvmlDeviceGetTemperatureV(struct device *device, struct temperature *temperature)
{
    ASKED_ABOUT(device);
    if (temperature->version != (sizeof *temperature | 1U << 24))
        return ARGUMENT_VERSION_MISMATCH;
    return temperature->sensor == 0 ? give_own(&call, "temperature", (unsigned *)&temperature->temperature)
                                    : INVALID_ARGUMENT;
}

#define GIVES(asked, word)                                                                                             \
    int asked(struct device *device, unsigned *value)                                                                  \
    {                                                                                                                  \
        ASKED_ABOUT(device);                                                                                           \
        return give_own(&call, word, value);                                                                           \
    }

GIVES(nvmlDeviceGetPowerUsage, "power")
GIVES(nvmlDeviceGetEnforcedPowerLimit, "power_limit")
GIVES(nvmlDeviceGetPowerManagementLimit, "power_limit")
GIVES(nvmlDeviceGetFanSpeed, "fan")
GIVES(nvmlDeviceGetComputeMode, "compute_mode")

#define GIVES_LONG(asked, word)                                                                                        \
    int asked(struct device *device, unsigned long long *value)                                                        \
    {                                                                                                                  \
        ASKED_ABOUT(device);                                                                                           \
        return own_number(&call, word, value);                                                                         \
    }

GIVES_LONG(nvmlDeviceGetTotalEnergyConsumption, "energy")
GIVES_LONG(nvmlDeviceGetCurrentClocksEventReasons, "throttle")
GIVES_LONG(nvmlDeviceGetCurrentClocksThrottleReasons, "throttle")

static const unsigned long long ALL_REASONS = 0x1ff;

/* A GPU that can tell its reasons knows all of them. */
#define GIVES_ALL_REASONS(asked)                                                                                       \
    int asked(struct device *device, unsigned long long *value)                                                        \
    {                                                                                                                  \
        ASKED_ABOUT(device);                                                                                           \
        int result = own_number(&call, "throttle", value);                                                             \
        if (result == SUCCESS)                                                                                         \
            *value = ALL_REASONS;                                                                                      \
        return result;                                                                                                 \
    }

GIVES_ALL_REASONS(nvmlDeviceGetSupportedClocksEventReasons)
GIVES_ALL_REASONS(nvmlDeviceGetSupportedClocksThrottleReasons)

int nvmlDeviceGetClockInfo(struct device *device, unsigned type, unsigned *clock)
{
    ASKED_ABOUT(device);
    switch (type) {
    case 0: /* graphics */
    case 1: /* SM */
        return give_own(&call, "clock", clock);
    case 2: return give_own(&call, "memory_clock", clock);
    case 3: return NOT_SUPPORTED; /* video */
    default: return INVALID_ARGUMENT;
    }
}

int nvmlDeviceGetPcieThroughput(struct device *device, unsigned counter, unsigned *rate)
{
    ASKED_ABOUT(device);
    if (counter > 1)
        return INVALID_ARGUMENT;
    return give_own(&call, counter == 0 ? "pcie_tx" : "pcie_rx", rate);
}

struct field {
    unsigned id, scope;
    long long timestamp, latency;
    unsigned type;
    int result;
    unsigned long long value;
};

_Static_assert(sizeof(struct field) == 40, "the bindings count on this layout");

enum { UNSIGNED_LONG_LONG = 3 };
static const unsigned ALL_LINKS = ~0U;

/* The line that has a field; NULL for one that is not supported. */
static const char *word_of(const struct field *field)
{
    switch (field->id) {
    case 83: return "energy";
    case 138: return field->scope == ALL_LINKS ? "nvlink_tx_kib" : NULL;
    case 139: return field->scope == ALL_LINKS ? "nvlink_rx_kib" : NULL;
    case 197: return "pcie_tx_bytes";
    case 198: return "pcie_rx_bytes";
    default: return NULL;
    }
}

int nvmlDeviceGetFieldValues(struct device *device, int count, struct field *fields)
{
    ASKED_ABOUT(device);
    if (!fields)
        return INVALID_ARGUMENT;
    for (struct field *field = fields; field < fields + count; field++) {
        const char *word = word_of(field);
        field->timestamp = (long long)(call.now / 1000);
        field->latency = 0;
        field->type = UNSIGNED_LONG_LONG;
        field->result = word ? own_number(&call, word, &field->value) : NOT_SUPPORTED;
    }
    return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(struct device *device, int *major, int *minor)
{
    ASKED_ABOUT(device);
    *major = 8;
    *minor = 0;
    return SUCCESS;
}

/* ---- Processes -------------------------------------------------------------------------------------------------- */

/* The longest of the entries; the shorter ones are its beginning. */
struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected_memory;
};

enum { ENTRY_V1 = 16, ENTRY_V2 = 24, ENTRY_PROTECTED = 32 };

#ifdef PROTECTED_MEMORY_IN_V3
enum { ENTRY_V3 = ENTRY_PROTECTED };
#else
enum { ENTRY_V3 = ENTRY_V2 };
#endif

_Static_assert(sizeof(struct process) == ENTRY_PROTECTED, "the bindings count on this layout");

struct processes {
    char *to;
    unsigned room, count;
    size_t entry;
};

/* What a line says about a process: PID BYTES, and what follows. */
static bool read_process(const struct line *line, struct process *process, struct line *left)
{
    struct lines rest = {line->rest, line->rest + strlen(line->rest)};
    struct line said;
    unsigned long long pid;
    if (!take(&rest, &said) || !to_number(said.word, &pid))
        return false;
    process->pid = (unsigned)pid;
    rest = (struct lines){said.rest, said.rest + strlen(said.rest)};
    if (!take(&rest, left))
        return false;
    if (strcmp(left->word, "-") != 0)
        return to_number(left->word, &process->memory);
    process->memory = NOT_AVAILABLE;
    return true;
}

/* Appends what the device's lines have; what finds no room is only counted. */
static int append(struct processes *list, const struct call *call, const char *word)
{
    struct process process = {.gpu_instance = ~0U, .compute_instance = ~0U};
    struct lines lines = call->own;
    struct line line, left;
    give_own(call, "gi", &process.gpu_instance);
    give_own(call, "ci", &process.compute_instance);
    while (take_word(&lines, word, &line)) {
        if (!read_process(&line, &process, &left))
            return UNKNOWN;
        if (list->count < list->room)
            memcpy(list->to + list->count * list->entry, &process, list->entry);
        list->count++;
    }
    return SUCCESS;
}

/* A GPU in MIG mode has what its instances have. */
static int give_processes(const char *function, struct device *device, const char *word, unsigned *count, void *to,
                          size_t entry)
{
    FREED_AT_THE_END = about_device(function, device);
    if (call.result != SUCCESS)
        return call.result;
    struct processes list = {to, to ? *count : 0, 0, entry};
    bool is_instance = call.instance_index != NO_INSTANCE;
    int result = append(&list, &call, word);
    for (unsigned i = 0; !is_instance && result == SUCCESS && seek_instance(&call, i); i++)
        result = append(&list, &call, word);
    if (result != SUCCESS)
        return result;
    *count = list.count;
    return list.count <= list.room ? SUCCESS : INSUFFICIENT_SIZE;
}

#define LISTS(function, word, entry)                                                                                   \
    int function(struct device *device, unsigned *count, void *to)                                                     \
    {                                                                                                                  \
        return give_processes(__func__, device, word, count, to, entry);                                               \
    }

LISTS(nvmlDeviceGetComputeRunningProcesses, "process", ENTRY_V1)
LISTS(nvmlDeviceGetComputeRunningProcesses_v2, "process", ENTRY_V2)
LISTS(nvmlDeviceGetComputeRunningProcesses_v3, "process", ENTRY_V3)
LISTS(nvmlDeviceGetGraphicsRunningProcesses, "graphics", ENTRY_V1)
LISTS(nvmlDeviceGetGraphicsRunningProcesses_v2, "graphics", ENTRY_V2)
LISTS(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics", ENTRY_V3)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, "mps", ENTRY_V1)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mps", ENTRY_V2)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps", ENTRY_V3)

struct sample {
    unsigned pid;
    unsigned long long timestamp;
    unsigned sm, memory, encoder, decoder;
};

_Static_assert(sizeof(struct sample) == 32, "the bindings count on this layout");

struct samples {
    struct sample *to;
    unsigned room, count;
    unsigned processes, known;
};

/* Appends the processes of one kind that use the SMs; as the driver does, it leaves out those that are idle. */
static int sample(struct samples *list, const struct call *call, const char *word)
{
    struct sample sample = {.timestamp = (unsigned long long)(call->now / 1000)};
    struct lines lines = call->own;
    struct line line, left;
    struct process process;
    unsigned long long used;
    for (; take_word(&lines, word, &line); list->processes++) {
        if (!read_process(&line, &process, &left))
            return UNKNOWN;
        if (left.rest[0] == '\0')
            continue;
        if (!to_number_at(left.rest, call->now, &used))
            return UNKNOWN;
        list->known++;
        if (used == 0)
            continue;
        sample.pid = process.pid;
        sample.sm = (unsigned)used;
        if (list->count < list->room)
            list->to[list->count] = sample;
        list->count++;
    }
    return SUCCESS;
}

/* The samples are of this moment; a GPU that has processes and tells of none what it uses does not support this. */
int nvmlDeviceGetProcessUtilization(struct device *device, struct sample *to, unsigned *count, unsigned long long since)
{
    ASKED_ABOUT(device);
    if (in_mig_mode(&call))
        return NOT_SUPPORTED;
    struct samples list = {.to = to, .room = to ? *count : 0};
    static const char *const kinds[] = {"process", "graphics", "mps"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int result = sample(&list, &call, kinds[i]);
        if (result != SUCCESS)
            return result;
    }
    if (list.processes > 0 && list.known == 0)
        return NOT_SUPPORTED;
    if (list.count == 0 || call.now / 1000 <= since)
        return NOT_FOUND;
    *count = list.count;
    return list.count <= list.room ? SUCCESS : INSUFFICIENT_SIZE;
}

/* ---- Events ----------------------------------------------------------------------------------------------------- */

enum { XID = 8, ALL_EVENTS = 0xffff };

/* Of one kind of error of one GPU, how many a set has told. */
struct told {
    const struct device *device;
    unsigned long long xid, count;
};

struct event_set {
    bool is_used;
    struct device *devices[64];
    size_t devices_known;
    struct told told[512];
    size_t told_known;
};

static struct event_set event_sets[64];

/* The functions that take a set have the lock. */
static bool is_set(const struct event_set *set)
{
    for (size_t i = 0; i < sizeof event_sets / sizeof *event_sets; i++)
        if (set == &event_sets[i])
            return set->is_used;
    return false;
}

static bool has_device(const struct event_set *set, const struct device *device)
{
    for (size_t i = 0; i < set->devices_known; i++)
        if (set->devices[i] == device)
            return true;
    return false;
}

/* What a set has told of a kind of error, from 0 on; NULL when there is no room. */
static struct told *told_of(struct event_set *set, const struct device *device, unsigned long long xid)
{
    for (size_t i = 0; i < set->told_known; i++)
        if (set->told[i].device == device && set->told[i].xid == xid)
            return &set->told[i];
    if (set->told_known == sizeof set->told / sizeof *set->told)
        return NULL;
    set->told[set->told_known] = (struct told){device, xid, 0};
    return &set->told[set->told_known++];
}

/* Takes what the next line says about errors, NUMBER COUNT; none is NOT_FOUND. */
static int take_xid(const struct call *call, struct lines *left, struct told *seen)
{
    struct line line, said;
    if (!take_word(left, "xid", &line))
        return NOT_FOUND;
    struct lines rest = {line.rest, line.rest + strlen(line.rest)};
    bool is_read = take(&rest, &said) && to_number(said.word, &seen->xid) &&
                   to_number_at(said.rest, call->now, &seen->count);
    return is_read ? SUCCESS : UNKNOWN;
}

/* What has happened before is not told. */
static int add_device(const struct call *call, struct event_set *set, struct device *device)
{
    struct lines left = call->own;
    struct told seen;
    int result;
    if (has_device(set, device))
        return SUCCESS;
    if (set->devices_known == sizeof set->devices / sizeof *set->devices)
        return UNKNOWN;
    while ((result = take_xid(call, &left, &seen)) == SUCCESS) {
        struct told *told = told_of(set, device, seen.xid);
        if (!told)
            return UNKNOWN;
        told->count = seen.count;
    }
    if (result != NOT_FOUND)
        return result;
    set->devices[set->devices_known++] = device;
    return SUCCESS;
}

/* An error of the call's GPU that the set has not told; none is NOT_FOUND. */
static int tell(const struct call *call, struct event_set *set, const struct device *device, unsigned long long *xid)
{
    struct lines left = call->own;
    struct told seen;
    int result;
    while ((result = take_xid(call, &left, &seen)) == SUCCESS) {
        struct told *told = told_of(set, device, seen.xid);
        if (!told)
            return UNKNOWN;
        if (told->count >= seen.count)
            continue;
        told->count++;
        *xid = seen.xid;
        return SUCCESS;
    }
    return result;
}

struct event {
    struct device *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

enum { EVENT_V1 = 24, EVENT_V2 = 32 };

_Static_assert(sizeof(struct event) == EVENT_V2, "the bindings count on this layout");

/* The next event of the set, none is NOT_FOUND. It comes before what the call fails with: a lost GPU has a last one. */
static int find_event(struct call *call, struct event_set *set, struct event *event)
{
    int failure = (int)said_about(call, "error");
    for (size_t i = 0; i < set->devices_known; i++) {
        struct device *device = set->devices[i];
        unsigned long long xid;
        bool is_there = seek_uuid(call, device->uuid);
        int result = is_there ? tell(call, set, device, &xid) : GPU_IS_LOST;
        if (result == SUCCESS) {
            *event = (struct event){device, XID, xid, ~0U, ~0U};
            return SUCCESS;
        }
        if (result == NOT_FOUND)
            result = (int)said_about(call, "error");
        if (failure == SUCCESS)
            failure = result;
    }
    return failure != SUCCESS ? failure : NOT_FOUND;
}

/* As find_event, when nobody else has the set. */
static int find_event_alone(struct call *call, struct event_set *set, struct event *event)
{
    pthread_mutex_lock(&lock);
    int result = is_set(set) ? find_event(call, set, event) : INVALID_ARGUMENT;
    pthread_mutex_unlock(&lock);
    return result;
}

static unsigned long long monotonic_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * 1000000 + (unsigned long long)time.tv_nsec / 1000;
}

static int wait_for_event(const char *function, struct event_set *set, void *to, size_t size, unsigned timeout_ms)
{
    const unsigned long long end = monotonic_us() + 1000ULL * timeout_ms;
    struct event event;
    FREED_AT_THE_END = about_machine(function, true);
    int result = call.result == SUCCESS ? refusal(&call) : call.result;
    if (result == SUCCESS)
        result = find_event_alone(&call, set, &event);
    for (unsigned long long now; result == NOT_FOUND && (now = monotonic_us()) < end;) {
        wait_us(end - now < 5000 ? end - now : 5000);
        forget(&call);
        call = look(function, true);
        result = call.result == SUCCESS ? find_event_alone(&call, set, &event) : call.result;
    }
    if (result == SUCCESS)
        memcpy(to, &event, size);
    return result == NOT_FOUND ? TIMEOUT : result;
}

int nvmlEventSetWait(struct event_set *set, void *to, unsigned timeout_ms)
{
    return wait_for_event(__func__, set, to, EVENT_V1, timeout_ms);
}

int nvmlEventSetWait_v2(struct event_set *set, void *to, unsigned timeout_ms)
{
    return wait_for_event(__func__, set, to, EVENT_V2, timeout_ms);
}

int nvmlEventSetCreate(struct event_set **set)
{
    ASKED_ABOUT_THE_MACHINE;
    *set = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof event_sets / sizeof *event_sets && !*set; i++)
        if (!event_sets[i].is_used)
            *set = &event_sets[i];
    if (*set)
        **set = (struct event_set){.is_used = true};
    pthread_mutex_unlock(&lock);
    return *set ? SUCCESS : UNKNOWN;
}

int nvmlEventSetFree(struct event_set *set)
{
    ASKED_ABOUT_THE_MACHINE;
    pthread_mutex_lock(&lock);
    bool is = is_set(set);
    if (is)
        set->is_used = false;
    pthread_mutex_unlock(&lock);
    return is ? SUCCESS : INVALID_ARGUMENT;
}

GIVES_LONG(nvmlDeviceGetSupportedEventTypes, "events")

int nvmlDeviceRegisterEvents(struct device *device, unsigned long long types, struct event_set *set)
{
    unsigned long long supported;
    ASKED_ABOUT(device);
    int result = own_number(&call, "events", &supported);
    if (result != SUCCESS)
        return result;
    if (types & ~(unsigned long long)ALL_EVENTS)
        return INVALID_ARGUMENT;
    if (types & ~supported)
        return NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    if (!is_set(set))
        result = INVALID_ARGUMENT;
    else if (types & XID)
        result = add_device(&call, set, device);
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- MIG -------------------------------------------------------------------------------------------------------- */

int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending)
{
    ASKED_ABOUT(device);
    int result = give_own(&call, "mig", current);
    if (result == SUCCESS)
        *pending = *current;
    return result;
}

int nvmlDeviceGetMaxMigDeviceCount(struct device *device, unsigned *count)
{
    ASKED_ABOUT(device);
    *count = in_mig_mode(&call) ? MIG_DEVICES_MAX : 0;
    return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned index, struct device **handle)
{
    ASKED_ABOUT(device);
    if (call.instance_index != NO_INSTANCE || !in_mig_mode(&call))
        return NOT_SUPPORTED;
    return seek_instance(&call, index) ? give_handle(&call, handle) : NOT_FOUND;
}

int nvmlDeviceIsMigDeviceHandle(struct device *device, unsigned *is)
{
    ASKED_ABOUT(device);
    *is = call.instance_index != NO_INSTANCE;
    return SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct device *device, struct device **handle)
{
    ASKED_ABOUT(device);
    if (call.instance_index == NO_INSTANCE)
        return NOT_SUPPORTED;
    return seek_gpu(&call, call.gpu_index) ? give_handle(&call, handle) : UNKNOWN;
}

GIVES(nvmlDeviceGetGpuInstanceId, "gi")
GIVES(nvmlDeviceGetComputeInstanceId, "ci")

struct attributes {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

int nvmlDeviceGetAttributes_v2(struct device *device, struct attributes *attributes)
{
    unsigned long long total;
    ASKED_ABOUT(device);
    if (call.instance_index == NO_INSTANCE)
        return NOT_SUPPORTED;
    int result = own_number(&call, "total", &total);
    if (result == SUCCESS)
        *attributes = (struct attributes){
            .multiprocessors = 14, .gpu_slices = 1, .compute_slices = 1, .memory_mib = total >> 20};
    return result;
}

/* ---- What is asked and not supported ---------------------------------------------------------------------------- */

/* A real driver has these functions; the arguments that follow the handle are not looked at. */
#define DOES_NOT_SUPPORT(asked)                                                                                        \
    int asked(struct device *device)                                                                                   \
    {                                                                                                                  \
        ASKED_ABOUT(device);                                                                                           \
        return NOT_SUPPORTED;                                                                                          \
    }

DOES_NOT_SUPPORT(nvmlDeviceGetArchitecture)
DOES_NOT_SUPPORT(nvmlDeviceGetBAR1MemoryInfo)
DOES_NOT_SUPPORT(nvmlDeviceGetBrand)
DOES_NOT_SUPPORT(nvmlDeviceGetConfComputeMemSizeInfo)
DOES_NOT_SUPPORT(nvmlDeviceGetDecoderUtilization)
DOES_NOT_SUPPORT(nvmlDeviceGetDisplayActive)
DOES_NOT_SUPPORT(nvmlDeviceGetDisplayMode)
DOES_NOT_SUPPORT(nvmlDeviceGetDriverModel)
DOES_NOT_SUPPORT(nvmlDeviceGetDriverModel_v2)
DOES_NOT_SUPPORT(nvmlDeviceGetEncoderUtilization)
DOES_NOT_SUPPORT(nvmlDeviceGetFanSpeed_v2)
DOES_NOT_SUPPORT(nvmlDeviceGetMaxClockInfo)
DOES_NOT_SUPPORT(nvmlDeviceGetMemoryErrorCounter)
DOES_NOT_SUPPORT(nvmlDeviceGetNumFans)
DOES_NOT_SUPPORT(nvmlDeviceGetPciInfoExt)
DOES_NOT_SUPPORT(nvmlDeviceGetPerformanceState)
DOES_NOT_SUPPORT(nvmlDeviceGetPersistenceMode)
DOES_NOT_SUPPORT(nvmlDeviceGetPowerState)
DOES_NOT_SUPPORT(nvmlDeviceGetSerial)
DOES_NOT_SUPPORT(nvmlDeviceGetTotalEccErrors)
#ifndef PROTECTED_MEMORY_IN_V3
/* It came when the longer entries went: programs tell by it which of the two they have before them. */
DOES_NOT_SUPPORT(nvmlDeviceGetRunningProcessDetailList)
#endif
