package vswitch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/podnet"
)

// opError is the server's refusal of a transaction; nothing of it was applied.
type opError struct {
	index         int // of the operation at fault; -1: the commit failed, and nobody says over which operation
	name, details string
}

func (e *opError) Error() string {
	text := "OVSDB refuses: " + e.name
	if e.details != "" {
		text += ": " + e.details
	}
	return text
}

type opResult struct {
	Count          int
	Error, Details string
}

// transact runs one transaction to its answer, whether the caller still waits
// or not: it has no other way to learn what became of it. An error is an
// *opError or *rpcError (not applied), or wraps podnet.ErrNotConnected (not
// sent) or podnet.ErrOutcomeUnknown.
func (s *session) transact(ctx context.Context, kind string, joined int, ops []ovsdb.Operation) (results []opResult, err error) {
	begin := time.Now()
	defer func() { s.client.cfg.Observer.Transacted(kind, joined, time.Since(begin), err) }()
	limit := s.client.cfg.AnswerTimeout
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	raw, err := s.rpc.call(ctx, "transact", ovsdb.NewTransactArgs(database, ops...), nil)
	if err != nil {
		if ctx.Err() != nil {
			s.rpc.close(fmt.Errorf("no answer to a transaction in %v", limit))
		}
		return nil, err
	}
	results, err = checkResults(raw, len(ops))
	if errors.Is(err, podnet.ErrOutcomeUnknown) {
		s.rpc.close(err)
	}
	return results, err
}

// checkResults looks at every result (RFC 7047, 4.1.3): of an operation that
// failed, at its place; of a commit that failed, one more than operations.
func checkResults(raw json.RawMessage, ops int) ([]opResult, error) {
	var results []opResult
	if err := json.Unmarshal(raw, &results); err != nil {
		return nil, fmt.Errorf("OVSDB's answer to a transaction is malformed (%v): %w", err, podnet.ErrOutcomeUnknown)
	}
	for i, r := range results {
		if r.Error == "" {
			continue
		}
		if i >= ops {
			i = -1
		}
		return nil, &opError{i, r.Error, r.Details}
	}
	if len(results) < ops {
		return nil, fmt.Errorf("OVSDB answered %d of %d operations: %w", len(results), ops, podnet.ErrOutcomeUnknown)
	}
	return results, nil
}

// batch is a set of changes that wait together.
type batch struct {
	kind string
	n    int
	// key: changes with the same key never share a transaction.
	key func(i int) string
	// settle looks at current tables whether change i is done, or cannot be. It
	// is asked before every attempt, so it also finds what an attempt of
	// unknown outcome has done.
	settle func(t *tables, i int) (done bool, err error)
	// plan makes the operations for some changes. owner names each operation's
	// change, -1 for one that all share.
	plan func(t *tables, items []int) (ops []ovsdb.Operation, owner []int)
	// gone is the error of a change whose row had vanished; nil: that is as well.
	gone error
}

// commit brings a batch to its end: one error per change. Changes share one
// transaction as long as they can. A change that the server blames is taken out
// and the rest sent again; when it blames nobody, the group is halved until it does.
// ctx bounds the wait for a connection, never a transaction under way.
func (c *Client) commit(ctx context.Context, b batch) []error {
	errs := make([]error, b.n)
	sent := make([]bool, b.n)
	all := make([]int, b.n)
	for i := range all {
		all[i] = i
	}
	groups := [][]int{all}
	for len(groups) > 0 {
		last := len(groups) - 1
		group := groups[last]
		groups = groups[:last]
		s, err := c.ready(ctx)
		if err != nil {
			for _, g := range append(groups, group) {
				for _, i := range g {
					errs[i] = err
					if sent[i] {
						// Not %w: err says that nothing was sent, which holds for the last attempt only.
						errs[i] = fmt.Errorf("%w: %v", podnet.ErrOutcomeUnknown, err)
					}
				}
			}
			return errs
		}
		items, later, ops, owner := c.prepare(s, b, group, errs)
		if len(later) > 0 {
			groups = append(groups, later)
		}
		if len(items) == 0 {
			continue
		}
		results, err := s.transact(ctx, b.kind, len(items), ops)
		groups = append(groups, b.regroup(outcome{items, owner, ops, results, err}, errs, sent)...)
		if errors.Is(err, podnet.ErrNotConnected) {
			<-s.rpc.stopped
		}
	}
	return errs
}

// prepare settles what can be settled and plans the rest; later holds what must
// not be in this transaction.
func (c *Client) prepare(s *session, b batch, group []int, errs []error) (items, later []int, ops []ovsdb.Operation, owner []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != s {
		return nil, group, nil, nil
	}
	keys := map[string]bool{}
	for _, i := range group {
		done, err := b.settle(c.tables, i)
		switch key := b.key(i); {
		case done || err != nil:
			errs[i] = err
		case keys[key]:
			later = append(later, i)
		default:
			keys[key] = true
			items = append(items, i)
		}
	}
	if len(items) > 0 {
		ops, owner = b.plan(c.tables, items)
	}
	return items, later, ops, owner
}

type outcome struct {
	items   []int
	owner   []int
	ops     []ovsdb.Operation
	results []opResult
	err     error
}

// regroup enters the errors of one transaction and returns the groups to send again.
func (b batch) regroup(o outcome, errs []error, sent []bool) [][]int {
	half := len(o.items) / 2
	halves := [][]int{o.items[half:], o.items[:half]}
	if half == 0 {
		halves = [][]int{o.items}
	}
	var refused *opError
	switch {
	case o.err == nil:
		for n, op := range o.ops {
			if op.Op == ovsdb.OperationInsert || o.results[n].Count > 0 {
				continue
			}
			for _, i := range o.items {
				if o.owner[n] == i || o.owner[n] < 0 {
					errs[i] = b.gone
				}
			}
		}
		return nil
	case errors.Is(o.err, podnet.ErrNotConnected):
		return [][]int{o.items}
	case errors.Is(o.err, podnet.ErrOutcomeUnknown):
		for _, i := range o.items {
			sent[i] = true
		}
		// In halves: should one change upset the server, the others get by.
		return halves
	case errors.As(o.err, &refused) && refused.index >= 0 && o.owner[refused.index] >= 0:
		culprit := o.owner[refused.index]
		errs[culprit] = o.err
		rest := make([]int, 0, len(o.items))
		for _, i := range o.items {
			sent[i] = false
			if i != culprit {
				rest = append(rest, i)
			}
		}
		return [][]int{rest}
	case len(o.items) == 1:
		errs[o.items[0]] = o.err
		return nil
	default:
		return halves
	}
}
