package bloom

import (
	"fmt"
	"syscall"
	"unsafe"
)

const (
	hugePage          = 2 << 20
	madvPopulateWrite = 23 // of linux/mman.h; not in syscall
)

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
	// Have the kernel make the pages now: where it does so at the first access to each, which may take
	// a tenth of a second on a virtual machine, a garbage collection that begins meanwhile waits for
	// it, and everybody for that. Page by page, so that others get at the map of memory in between.
	// Kernels before 5.14 refuse.
	for at := int(start); at < int(start)+size; at += hugePage {
		_ = syscall.Madvise(mapping[at:min(at+hugePage, int(start)+size)], madvPopulateWrite)
	}
	words = unsafe.Slice((*uint64)(unsafe.Pointer(&mapping[start])), n)
	return words, func() { _ = syscall.Munmap(mapping) }, nil
}
