package bloom

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The memory of a filter is there before anybody uses it.
func TestWordsAreInMemory(t *testing.T) {
	t.Parallel()
	words, release, err := allocate(3*hugePage/wordBytes + 1000)
	require.NoError(t, err)
	defer release()
	page := syscall.Getpagesize()
	if syscall.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), page), madvPopulateWrite) != nil {
		t.Skip("this kernel makes pages at the first access alone")
	}
	there := make([]byte, (len(words)*wordBytes+page-1)/page)
	_, _, fault := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&words[0])), uintptr(len(words)*wordBytes), uintptr(unsafe.Pointer(&there[0])))
	require.Zero(t, fault)
	for _, is := range there {
		require.EqualValues(t, 1, is&1)
	}
}
