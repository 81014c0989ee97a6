package kube

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxComplaints bounds what is remembered: namespaces come and go.
const maxComplaints = 256

// complaints tells which refusals were logged already: what the API server says
// of one Pod of a namespace it says of all. The zero value is ready to use.
type complaints struct {
	mu   sync.Mutex
	said map[complaint]struct{}
}

type complaint struct {
	namespace string
	reason    metav1.StatusReason
}

// news reports whether a refusal is the first of its kind since the last success.
func (c *complaints) news(namespace string, err error) bool {
	key := complaint{namespace, apierrors.ReasonForError(err)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.said[key]; ok {
		return false
	}
	if c.said == nil || len(c.said) >= maxComplaints {
		c.said = map[complaint]struct{}{}
	}
	c.said[key] = struct{}{}
	return true
}

// well forgets what was said of a namespace.
func (c *complaints) well(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.said {
		if key.namespace == namespace {
			delete(c.said, key)
		}
	}
}
