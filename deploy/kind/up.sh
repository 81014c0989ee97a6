#!/bin/sh
# Makes a kind cluster with antrea-lite as its network. Usage: deploy/kind/up.sh
# from the top of the source tree; needs kind, kubectl and Docker. `make kind-up`
# builds the images before.
#
# DATAPATH=system takes the kernel's openvswitch module, which all nodes of a kind
# cluster share with the machine; the default does without it.
set -eu

DATAPATH=${DATAPATH:-netdev}
CLUSTER=antrea-lite

for tool in docker kind kubectl; do
	command -v $tool >/dev/null || { echo "kind-up needs $tool: install it and try again" >&2; exit 1; }
done
docker info >/dev/null 2>&1 || { echo 'no Docker engine answers: start it, or give this user the right to use it' >&2; exit 1; }
case $DATAPATH in
netdev) ;;
system)
	grep -q '^openvswitch ' /proc/modules || { echo 'the kernel has no openvswitch module loaded: modprobe openvswitch, or use DATAPATH=netdev' >&2; exit 1; }
	;;
*)
	echo "DATAPATH=$DATAPATH is unknown: use netdev or system" >&2
	exit 1
	;;
esac

if ! kind get clusters 2>/dev/null | grep -qx $CLUSTER; then
	kind create cluster --config deploy/kind/kind.yaml
fi
for image in agent openvswitch; do
	kind load image-archive bin/images/$image.tar --name $CLUSTER
done
sed "s/^    datapath: system$/    datapath: $DATAPATH/" deploy/antrea-lite.yaml | kubectl --context kind-$CLUSTER apply -f -
kubectl --context kind-$CLUSTER -n kube-system rollout status daemonset/antrea-lite --timeout=3m
kubectl --context kind-$CLUSTER wait --for=condition=Ready nodes --all --timeout=2m
kubectl --context kind-$CLUSTER get nodes -o wide
