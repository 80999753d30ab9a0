/* A job that says when it ran: appends "SLOT BEGIN END\n" (nanoseconds) to the file argv[2]; the slot is argv[1]. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    long long begin = now();
    struct timespec nap = {0, 10000000};
    char line[200];
    if (argc != 3) return 2;
    int file = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0600);
    nanosleep(&nap, NULL);
    int size = snprintf(line, sizeof line, "%s %lld ", argv[1], begin);
    size += snprintf(line + size, sizeof line - size, "%lld\n", now());
    return write(file, line, size) != size;
}
