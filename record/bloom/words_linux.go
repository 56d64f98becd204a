package bloom

import (
	"fmt"
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// allocate returns zeroed words. If they fill at least one huge page, they are outside the Go heap. In the heap, a
// filter of some gigabytes would delay the garbage collector until there is as much garbage. These words use huge
// pages, because otherwise nearly every access would also miss the TLB. If release is not nil, it must be called
// once, when the words are no longer used.
func allocate(n uint64) (words []uint64, release func(), err error) {
	size := int(n) * wordBytes
	if size < hugePage {
		return make([]uint64, n), nil, nil
	}
	// Map one huge page more than needed, so that the words can start at the start of a huge page. The
	// remaining memory is never touched.
	mapping, err := syscall.Mmap(-1, 0, size+hugePage, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("mmap %d bytes: %w", size, err)
	}
	start := -uintptr(unsafe.Pointer(&mapping[0])) % hugePage
	// Request huge pages only for the part of the mapping that consists of whole huge pages. A last, partial huge
	// page would exceed the size. If the request fails, access is only slower.
	_ = syscall.Madvise(mapping[start:int(start)+size&^(hugePage-1)], syscall.MADV_HUGEPAGE)
	words = unsafe.Slice((*uint64)(unsafe.Pointer(&mapping[start])), n)
	return words, func() { _ = syscall.Munmap(mapping) }, nil
}
