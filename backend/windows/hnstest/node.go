package hnstest

import (
	"maps"

	"github.com/antrea-lite/podnet/backend/windows"
)

// Others use HNS too: the runtime makes namespaces, other programs and HNS
// itself make objects vanish. None of this is a call, and no fault applies.

// AddNetwork makes a network and returns its id.
func (h *HNS) AddNetwork(n windows.Network) windows.GUID {
	h.mu.Lock()
	defer h.mu.Unlock()
	n.ID = h.newID()
	h.networks[n.ID] = n
	return n.ID
}

// RemoveNetworks removes the networks of a name, and with them their endpoints, as HNS does.
func (h *HNS) RemoveNetworks(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.networks, func(_ windows.GUID, n windows.Network) bool { return n.Name == name })
	maps.DeleteFunc(h.endpoints, func(_ windows.GUID, e windows.Endpoint) bool {
		_, ok := h.networks[e.Network]
		return !ok
	})
}

// AddNamespace makes a namespace, as a runtime does for a sandbox.
func (h *HNS) AddNamespace() windows.GUID {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.newID()
	h.namespaces[id] = true
	return id
}

// RemoveNamespace removes a namespace. Endpoints in it stay and go on naming it.
func (h *HNS) RemoveNamespace(id windows.GUID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.namespaces, id)
}

// AddEndpoint makes an endpoint as it is given, but for its id, without any
// check, as another program or an earlier process did.
func (h *HNS) AddEndpoint(e windows.Endpoint) windows.GUID {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.ID = h.newID()
	h.endpoints[e.ID] = e
	return e.ID
}

// RemoveEndpoints removes the endpoints of a name.
func (h *HNS) RemoveEndpoints(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.endpoints, func(_ windows.GUID, e windows.Endpoint) bool { return e.Name == name })
}

// ChangeEndpoints lets fn change the endpoints of a name.
func (h *HNS) ChangeEndpoints(name string, fn func(*windows.Endpoint)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, e := range h.endpoints {
		if e.Name == name {
			fn(&e)
			h.endpoints[id] = e
		}
	}
}

// PinState makes endpoints of a name show that state whatever becomes of them.
func (h *HNS) PinState(name string, state windows.EndpointState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pinned[name] = state
}

// ChooseMACs makes HNS give endpoints MAC addresses of its own, whatever is asked for.
func (h *HNS) ChooseMACs() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ownMAC = true
}

// Forget is a restart of the service that loses every endpoint and namespace,
// and with networks the networks too.
func (h *HNS) Forget(networks bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.endpoints)
	clear(h.namespaces)
	if networks {
		clear(h.networks)
	}
}

// Endpoints returns every endpoint, with its state.
func (h *HNS) Endpoints() []windows.Endpoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []windows.Endpoint
	for _, id := range sorted(h.endpoints) {
		list = append(list, h.shown(h.endpoints[id], true))
	}
	return list
}

// Networks returns every network.
func (h *HNS) Networks() []windows.Network {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []windows.Network
	for _, id := range sorted(h.networks) {
		list = append(list, h.networks[id])
	}
	return list
}
