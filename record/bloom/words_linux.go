package bloom

import (
	"fmt"
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// allocate gives zeroed words outside the Go heap: a filter of gigabytes must not make the garbage collector wait
// until as many gigabytes of garbage are there. Large ones ask for huge pages, without which nearly every access
// misses the table of page addresses as well. release must be called once, when nobody reads the words any more.
func allocate(n uint64) (words []uint64, release func(), err error) {
	size := int(n) * wordBytes
	if size < hugePage {
		return make([]uint64, n), nil, nil
	}
	// One page more, which stays untouched, so that the words can begin on a huge page.
	mapping, err := syscall.Mmap(-1, 0, size+hugePage, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("mmap %d bytes: %w", size, err)
	}
	start := -uintptr(unsafe.Pointer(&mapping[0])) % hugePage
	// Only whole huge pages, or the last one would take memory beyond the size. A refusal costs speed alone.
	_ = syscall.Madvise(mapping[start:int(start)+size&^(hugePage-1)], syscall.MADV_HUGEPAGE)
	words = unsafe.Slice((*uint64)(unsafe.Pointer(&mapping[start])), n)
	return words, func() { _ = syscall.Munmap(mapping) }, nil
}
