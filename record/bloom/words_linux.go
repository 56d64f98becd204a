package bloom

import (
	"fmt"
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// allocate returns zeroed words outside the Go heap: with a filter of gigabytes in the heap, the
// garbage collector would wait for as many gigabytes of garbage. Large ones use huge pages, without
// which nearly every access would also miss the cache of page addresses. release must be called
// once, when the words are no longer used.
func allocate(n uint64) (words []uint64, release func(), err error) {
	size := int(n) * wordBytes
	if size < hugePage {
		return make([]uint64, n), nil, nil
	}
	// Map one huge page more, so that the words can begin on a huge page. The rest stays untouched.
	mapping, err := syscall.Mmap(-1, 0, size+hugePage, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("mmap %d bytes: %w", size, err)
	}
	start := -uintptr(unsafe.Pointer(&mapping[0])) % hugePage
	// Only whole huge pages, or the last one would take more memory than the size. An error costs
	// only speed.
	_ = syscall.Madvise(mapping[start:int(start)+size&^(hugePage-1)], syscall.MADV_HUGEPAGE)
	words = unsafe.Slice((*uint64)(unsafe.Pointer(&mapping[start])), n)
	return words, func() { _ = syscall.Munmap(mapping) }, nil
}
