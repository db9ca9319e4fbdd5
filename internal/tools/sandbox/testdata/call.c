// call makes one system call in a chosen ABI and prints its result: 0, or the
// name of the error. Its exit status is 7 if the call failed.
//
//	call native|i386|x32 NUMBER [ARGUMENT…]
//
// An argument is a number, or s:TEXT for the address of a text, or z for the
// address of 256 zero bytes.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
	if (argc < 3)
		return 2;
	// i386 has addresses of 32 bits.
	char *at = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
#ifdef __x86_64__
		| MAP_32BIT
#endif
		, -1, 0);
	if (at == MAP_FAILED)
		return 2;
	long number = strtol(argv[2], NULL, 0), a[6] = {0}, result;
	for (int i = 3; i < argc && i < 9; i++) {
		if (strncmp(argv[i], "s:", 2) == 0) {
			a[i - 3] = (long)at;
			at = stpcpy(at, argv[i] + 2) + 1;
		} else if (strcmp(argv[i], "z") == 0) {
			a[i - 3] = (long)at;
			at += 256;
		} else {
			a[i - 3] = strtol(argv[i], NULL, 0);
		}
	}
	if (strcmp(argv[1], "i386") == 0) {
#ifdef __x86_64__
		register long ebp __asm__("r12") = a[5];
		__asm__ volatile("push %%rbp; mov %%r12, %%rbp; int $0x80; pop %%rbp"
			: "=a"(result)
			: "a"(number), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4]), "r"(ebp)
			: "memory", "r8", "r9", "r10", "r11");
		result = (int)result;
#else
		result = -ENOSYS;
#endif
	} else {
		if (strcmp(argv[1], "x32") == 0)
			number |= 0x40000000;
		result = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (result < 0)
			result = -errno;
	}
	if (result >= 0) {
		puts("0");
		return 0;
	}
	puts(strerrorname_np(-result) ? strerrorname_np(-result) : "unknown");
	return 7;
}
