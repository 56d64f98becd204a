package bloom

import (
	"fmt"
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// allocate returns n words that are zero. If they fill at least one huge page, they are outside the Go heap and use
// huge pages. A filter of some gigabytes in the Go heap would make the garbage collector run too seldom: only after
// about as many gigabytes of garbage. Without huge pages, nearly every access would also miss the TLB. If release is
// not nil, it must be called once, when the words are no longer used.
func allocate(n uint64) (words []uint64, release func(), err error) {
	size := int(n) * wordBytes
	if size < hugePage {
		return make([]uint64, n), nil, nil
	}
	// Map one huge page more than needed, so that the words can start at the boundary of a huge page. The rest of the
	// additional page is never touched, so it takes no memory.
	mapping, err := syscall.Mmap(-1, 0, size+hugePage, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("mmap %d bytes: %w", size, err)
	}
	start := -uintptr(unsafe.Pointer(&mapping[0])) % hugePage
	// Request huge pages only for the whole huge pages in the mapping. With a huge page for the partial page at the
	// end, the filter would take more memory than size. If the request fails, access is only slower.
	_ = syscall.Madvise(mapping[start:int(start)+size&^(hugePage-1)], syscall.MADV_HUGEPAGE)
	words = unsafe.Slice((*uint64)(unsafe.Pointer(&mapping[start])), n)
	return words, func() { _ = syscall.Munmap(mapping) }, nil
}
