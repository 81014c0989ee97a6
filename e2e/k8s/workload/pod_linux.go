package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// HTTPPort is where testpod answers with its Pod's name.
const HTTPPort = 8080

// Pod is a Pod that runs testpod's servers on a node. It is Ready when the node
// reaches them.
func Pod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: ptr.To(int64(1)),
			Containers: []corev1.Container{{
				Name: "testpod", Image: "localhost/testpod:1", ImagePullPolicy: corev1.PullNever,
				// Quick to see the Pod Ready, and as patient as the default, 3 times 10 s.
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 30, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(HTTPPort)}}},
			}},
		},
	}
}

// Light is a Pod that costs its node as little as a Pod can: it runs the
// sandbox's own program, asks for no token and is probed by nobody.
func Light(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: ptr.To(int64(1)),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			Containers:                    []corev1.Container{{Name: "pause", Image: cluster.SandboxImage, ImagePullPolicy: corev1.PullNever}},
		},
	}
}

// Ready returns nil when a Pod is Ready, else what it is.
func Ready(p *corev1.Pod) error {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("Pod %s is %s and not Ready", p.Name, p.Status.Phase)
}
