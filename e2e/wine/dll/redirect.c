// Redirects entries of a loaded DLL's export table. Go programs (and all of
// golang.org/x/sys) look procedures up by GetProcAddress at the first call, so
// that this catches them; programs that import by name at link time it does not.
#include "redirect.h"

// An entry holds an offset of 32 bits from the DLL's start. The code that it is
// to lead to may be farther away, so a jump to it is written to a page near
// the DLL.
static BYTE *near_page(BYTE *base, DWORD size) {
	const ULONG_PTR step = 0x10000; // VirtualAlloc's granularity
	BYTE *a = (BYTE *)(((ULONG_PTR)base + size + step - 1) & ~(step - 1));
	for (; a < base + 0x7fff0000; a += step) {
		BYTE *page = VirtualAlloc(a, 4096, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
		if (page) return page;
	}
	return 0;
}

void redirect(HMODULE m, const char *name, void *to, void **was) {
	BYTE *base = (BYTE *)m, *page;
	IMAGE_NT_HEADERS *nt;
	IMAGE_EXPORT_DIRECTORY *dir;
	DWORD *names, *funcs, i, old;
	WORD *ordinals;

	*was = 0;
	if (!m) return;
	nt = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
	dir = (IMAGE_EXPORT_DIRECTORY *)(base + nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_EXPORT].VirtualAddress);
	names = (DWORD *)(base + dir->AddressOfNames);
	funcs = (DWORD *)(base + dir->AddressOfFunctions);
	ordinals = (WORD *)(base + dir->AddressOfNameOrdinals);
	for (i = 0; i < dir->NumberOfNames; i++) {
		DWORD *entry = &funcs[ordinals[i]];
		if (lstrcmpA((char *)(base + names[i]), name)) continue;
		page = near_page(base, nt->OptionalHeader.SizeOfImage);
		if (!page || !VirtualProtect(entry, sizeof *entry, PAGE_READWRITE, &old)) return;
		page[0] = 0xff, page[1] = 0x25; // jmp to the address that follows
		*(DWORD *)(page + 2) = 0;
		*(void **)(page + 6) = to;
		*was = base + *entry;
		*entry = (DWORD)(page - base);
		VirtualProtect(entry, sizeof *entry, old, &old);
		return;
	}
}
