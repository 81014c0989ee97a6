package cluster

import (
	"os"
	"testing"
)

func TestMemoryIsTakenOnlyWhereThereIsPlenty(t *testing.T) {
	if _, err := os.Stat(sharedMemory); err != nil {
		t.Fatalf("%v: a Linux without it gets its disks in the cluster's directory, which is not what is tested here", err)
	}
	available, err := availableMemory()
	if err != nil {
		t.Fatal(err)
	}
	if available < 64<<20 {
		t.Fatalf("%d bytes of memory are left, which cannot be", available)
	}
	for _, test := range []struct {
		name string
		need int64
		want bool
	}{
		{"a page", 4096, true},
		{"most of what there is", available / 4 * 3, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := roomyMemory(test.need)
			if err != nil || got != test.want {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
