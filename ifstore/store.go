package ifstore

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
)

// Errors of the methods that change the store; they come wrapped with the
// values at fault.
var (
	// ErrNotFound: no entry of that key, or it is another life of it.
	ErrNotFound = errors.New("no such interface")
	// ErrConflict: another entry holds a value that must be unique.
	ErrConflict = errors.New("already taken")
)

// ConflictError tells which value of a new entry another entry holds.
type ConflictError struct {
	Field  string // "interface", "name" or "address"
	Value  string
	Key    Key       // of the entry that was refused
	Holder Interface // who has it
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s %s wanted by %s is held by %s%s (%s)", e.Field, e.Value, e.Key, e.Holder.Key, ofPod(e.Holder.Pod), e.Holder.State)
}

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

func ofPod(p Pod) string {
	if p.String() == "" {
		return ""
	}
	return " of Pod " + p.String()
}

// Store holds interfaces. Its methods may be called concurrently and never
// wait for anything but each other. The zero Store is not usable; see New.
type Store struct {
	mu      sync.RWMutex
	entries map[Key]*Interface // never handed out
	indexes indexes
	watches map[*Watch]struct{}
}

// New returns an empty store.
func New() *Store {
	return &Store{
		entries: make(map[Key]*Interface),
		indexes: newIndexes(),
		watches: make(map[*Watch]struct{}),
	}
}

// Insert adds a new entry. A *ConflictError tells that the key, the name or an
// address belongs to another entry. Entries that are being withdrawn count:
// what they hold is not free yet.
func (s *Store) Insert(i Interface) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.entries[i.Key]; old != nil {
		return &ConflictError{Field: "interface", Value: i.Key.String(), Key: i.Key, Holder: old.Clone()}
	}
	if holder := s.first(s.indexes.names[i.Name], nil); holder != nil {
		return &ConflictError{Field: "name", Value: i.Name, Key: i.Key, Holder: holder.Clone()}
	}
	for _, a := range i.Addresses {
		if holder := s.first(s.indexes.ips[a.Prefix.Addr()], nil); holder != nil {
			return &ConflictError{Field: "address", Value: a.Prefix.Addr().String(), Key: i.Key, Holder: holder.Clone()}
		}
	}
	s.set(i)
	return nil
}

// Put adds or replaces an entry without looking at others. It is for entries
// that are facts already, such as those read back after a restart.
func (s *Store) Put(i Interface) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(i)
}

// Update changes the entry of key through fn and returns the result. An entry
// that is gone stays gone: ErrNotFound, also when gen is not empty and the
// entry has another Gen. An error of fn is returned and changes nothing. fn
// runs under the store's lock: it must be quick and must not call the store;
// it may not change the Key.
func (s *Store) Update(key Key, gen string, fn func(*Interface) error) (Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.entries[key]
	if old == nil {
		return Interface{}, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	if gen != "" && old.Gen != gen {
		return Interface{}, fmt.Errorf("%w: %s with port row %s; its row is %s now", ErrNotFound, key, gen, old.Gen)
	}
	changed := old.Clone()
	if err := fn(&changed); err != nil {
		return Interface{}, err
	}
	if changed.Key != key {
		return Interface{}, fmt.Errorf("update of %s changes its key to %s", key, changed.Key)
	}
	s.set(changed)
	return changed, nil
}

// Delete removes the entry of key and returns what it was.
func (s *Store) Delete(key Key) (Interface, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.entries[key]
	if old == nil {
		return Interface{}, false
	}
	s.indexes.remove(old)
	delete(s.entries, key)
	s.notify(key)
	return *old, true
}

// set stores a copy of i.
func (s *Store) set(i Interface) {
	if old := s.entries[i.Key]; old != nil {
		s.indexes.remove(old)
	}
	i = i.Clone()
	s.entries[i.Key] = &i
	s.indexes.add(&i)
	s.notify(i.Key)
}

// first returns the oldest of the entries that keep accepts (nil: all). It is
// deterministic, so that repeated look-ups of a value that two entries carry agree.
func (s *Store) first(keys map[Key]struct{}, keep func(*Interface) bool) *Interface {
	var found *Interface
	for k := range keys {
		e := s.entries[k]
		if keep != nil && !keep(e) {
			continue
		}
		if found == nil || older(e, found) < 0 {
			found = e
		}
	}
	return found
}

func older(a, b *Interface) int {
	return cmp.Or(a.Created.Compare(b.Created), compareKeys(a.Key, b.Key))
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.ContainerID, b.ContainerID), cmp.Compare(a.IfName, b.IfName))
}

// standing accepts what readers may act on. The number and addresses of an
// entry that is being withdrawn may be given to another at any moment.
func standing(i *Interface) bool { return i.State != StateWithdrawing }

// Get returns the entry of key.
func (s *Store) Get(key Key) (Interface, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return copied(s.entries[key])
}

// ByName returns the entry whose host interface and OVS port have that name.
func (s *Store) ByName(name string) (Interface, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return copied(s.first(s.indexes.names[name], nil))
}

// ByIP returns the entry that has address ip. Entries being withdrawn are skipped.
func (s *Store) ByIP(ip netip.Addr) (Interface, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return copied(s.first(s.indexes.ips[ip], standing))
}

// ByOFPort returns the entry whose flows use that OpenFlow port number.
// Entries being withdrawn are skipped.
func (s *Store) ByOFPort(ofport uint32) (Interface, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return copied(s.first(s.indexes.ofports[ofport], standing))
}

// ByPod returns every entry of the Pod, whatever its UID, oldest first: two
// sandboxes of one Pod may exist side by side, and one may have several interfaces.
func (s *Store) ByPod(namespace, name string) []Interface {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.collect(s.indexes.pods[podName{namespace, name}])
}

// ByContainer returns every entry of the container, oldest first.
func (s *Store) ByContainer(containerID string) []Interface {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.collect(s.indexes.containers[containerID])
}

// List returns every entry, by key.
func (s *Store) List() []Interface {
	s.mu.RLock()
	list := make([]Interface, 0, len(s.entries))
	for _, e := range s.entries {
		list = append(list, e.Clone())
	}
	s.mu.RUnlock()
	slices.SortFunc(list, func(a, b Interface) int { return compareKeys(a.Key, b.Key) })
	return list
}

// Len returns the number of entries.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.entries)
}

func (s *Store) collect(keys map[Key]struct{}) []Interface {
	list := make([]Interface, 0, len(keys))
	for k := range keys {
		list = append(list, s.entries[k].Clone())
	}
	slices.SortFunc(list, func(a, b Interface) int { return older(&a, &b) })
	return list
}

func copied(i *Interface) (Interface, bool) {
	if i == nil {
		return Interface{}, false
	}
	return i.Clone(), true
}
