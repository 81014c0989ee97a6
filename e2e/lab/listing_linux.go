package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
)

// Listing is what there is of one kind: sorted lines by kind.
type Listing map[string][]string

// Minus returns what l has and other has not.
func (l Listing) Minus(other Listing) Listing {
	diff := Listing{}
	for kind, lines := range l {
		left := slices.Clone(lines)
		for _, line := range other[kind] {
			if i := slices.Index(left, line); i >= 0 {
				left = slices.Delete(left, i, i+1)
			}
		}
		if len(left) > 0 {
			diff[kind] = left
		}
	}
	return diff
}

// Diff tells in words what differs from an earlier listing; "" when nothing does.
func (l Listing) Diff(before Listing) string {
	var b strings.Builder
	for _, part := range []struct {
		word string
		Listing
	}{{"new", l.Minus(before)}, {"gone", before.Minus(l)}} {
		for _, kind := range part.kinds() {
			for _, line := range part.Listing[kind] {
				fmt.Fprintf(&b, "%s %s: %s\n", part.word, kind, line)
			}
		}
	}
	return b.String()
}

func (l Listing) kinds() []string {
	kinds := make([]string, 0, len(l))
	for kind := range l {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	return kinds
}

// Machine lists what a test could leave on the machine it runs on: interfaces,
// network namespaces and mounts.
func Machine() (Listing, error) {
	links, err := links()
	if err != nil {
		return nil, err
	}
	mounts, err := mounts()
	if err != nil {
		return nil, err
	}
	return Listing{"interface": links, "network namespace": namespaces(), "mount": mounts}, nil
}

func links() ([]string, error) {
	list, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var names []string
	for _, l := range list {
		names = append(names, l.Attrs().Name+" ("+l.Type()+")")
	}
	slices.Sort(names)
	return names, nil
}

func namespaces() []string {
	var names []string
	// No directory: nobody ever made one.
	entries, _ := os.ReadDir("/run/netns")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func mounts() ([]string, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(raw)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, fields[4])
		}
	}
	slices.Sort(points)
	return points, nil
}

// FlowLines reads what "ovs-ofctl --no-stats dump-flows" prints: a line for each
// flow, without cookies, which differ from one life of the agent to the next.
func FlowLines(dump string) []string {
	var flows []string
	for _, line := range lines(dump) {
		if !strings.Contains(line, "actions=") {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "cookie="); ok {
			_, line, _ = strings.Cut(rest, ", ")
		}
		flows = append(flows, line)
	}
	return flows
}

// Processes lists the command names of the processes that were started with
// variable, "NAME=value", in their environment: who sets one of its own finds
// all its descendants by it, whoever their parent is now.
func Processes(variable string) ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		// A process that ended meanwhile has neither file.
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if slices.Contains(strings.Split(string(environ), "\x00"), variable) {
			comm, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
			found = append(found, strings.TrimSpace(string(comm)))
		}
	}
	slices.Sort(found)
	return found, nil
}
