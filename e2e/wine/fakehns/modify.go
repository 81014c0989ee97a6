package fakehns

import (
	"encoding/json"
	"reflect"
	"slices"
)

// modify carries out what hcsshim asks of a namespace (attach, detach) and, for
// policies, of any object.
func (s *Server) modify(k kind, id string, o Object, settings string) *Reply {
	var r struct {
		ResourceType, RequestType string
		Settings                  Object
	}
	if err := json.Unmarshal([]byte(settings), &r); err != nil {
		return Fail(InvalidJSON, err.Error())
	}
	switch {
	case k == namespace && r.ResourceType == "Endpoint" && r.RequestType == "Add":
		return s.attach(o, r.Settings.id("EndpointId"))
	case k == namespace && r.ResourceType == "Endpoint" && r.RequestType == "Remove":
		return s.detach(o, r.Settings.id("EndpointId"))
	case r.ResourceType == "Policy":
		changePolicies(o, r.RequestType, r.Settings.list("Policies"))
	}
	return done()
}

func (s *Server) attach(ns Object, endpointID string) *Reply {
	e := s.objects[endpoint][endpointID]
	switch {
	case e == nil:
		return Fail(EndpointNotFound, "The endpoint was not found. ")
	case e.id("HostComputeNamespace") == ns.ID():
		return Fail(AlreadyAttached, "The endpoint is already attached to the switch. ")
	case e.id("HostComputeNamespace") != "" && e.id("HostComputeNamespace") != noID:
		return Fail(InOtherNamespace, "The endpoint is attached to another namespace. ")
	}
	e["HostComputeNamespace"] = ns["ID"]
	rs, _ := ns["Resources"].([]any)
	ns["Resources"] = append(slices.Clone(rs), map[string]any{"Type": "Endpoint", "Data": map[string]any{"ID": e["ID"]}})
	return done()
}

func (s *Server) detach(ns Object, endpointID string) *Reply {
	if !leave(ns, endpointID) {
		return Fail(EndpointNotFound, "The endpoint was not found. ")
	}
	if e := s.objects[endpoint][endpointID]; e != nil {
		delete(e, "HostComputeNamespace")
		if a, ok := s.adapters[adapterName(e)]; ok && a.Compartment > 1 {
			delete(s.adapters, a.Name)
		}
	}
	return done()
}

// leave takes an endpoint off a namespace's list and says whether it was there.
func leave(ns Object, endpointID string) bool {
	var stay []any
	found := false
	for _, r := range ns.list("Resources") {
		if r.text("Type") == "Endpoint" && r.object("Data").ID() == endpointID {
			found = true
		} else {
			stay = append(stay, map[string]any(r))
		}
	}
	if stay == nil {
		stay = []any{}
	}
	ns["Resources"] = stay
	return found
}

func changePolicies(o Object, request string, given []Object) {
	policies := o.list("Policies")
	switch request {
	case "Add":
		policies = append(policies, given...)
	case "Update", "":
		policies = given
	case "Remove":
		policies = slices.DeleteFunc(policies, func(p Object) bool {
			return slices.ContainsFunc(given, func(g Object) bool { return reflect.DeepEqual(p, g) })
		})
	}
	o["Policies"] = policies
}
