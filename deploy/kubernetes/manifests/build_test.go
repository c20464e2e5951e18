// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// podMonitor contains the used fields of the Prometheus operator's PodMonitor.
type podMonitor struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector
		PodMetricsEndpoints []struct{ Port, Path, Interval string }
	}
}

// objects contains the output of kustomize for a folder, decoded strictly: an unknown field is an error.
type objects struct {
	daemonSet   *appsv1.DaemonSet
	deployment  *appsv1.Deployment
	configMap   *corev1.ConfigMap
	class       *resourceapi.DeviceClass
	template    *resourceapi.ResourceClaimTemplate
	role        *rbacv1.ClusterRole
	account     *corev1.ServiceAccount
	policies    []*networkingv1.NetworkPolicy
	podMonitor  *podMonitor
	pods        map[string]podOf // pods and pod templates by name
	everyObject []string         // kind/name
}

type podOf struct {
	labels map[string]string
	spec   *corev1.PodSpec
}

// makes returns functions that allocate an object in o, by kind.
func (o *objects) makes() map[string]func() any {
	return map[string]func() any{
		"apps/v1/DaemonSet":                               func() any { o.daemonSet = &appsv1.DaemonSet{}; return o.daemonSet },
		"apps/v1/Deployment":                              func() any { o.deployment = &appsv1.Deployment{}; return o.deployment },
		"v1/ConfigMap":                                    func() any { o.configMap = &corev1.ConfigMap{}; return o.configMap },
		"v1/ServiceAccount":                               func() any { o.account = &corev1.ServiceAccount{}; return o.account },
		"v1/Namespace":                                    func() any { return &corev1.Namespace{} },
		"resource.k8s.io/v1/DeviceClass":                  func() any { o.class = &resourceapi.DeviceClass{}; return o.class },
		"resource.k8s.io/v1/ResourceClaimTemplate":        func() any { o.template = &resourceapi.ResourceClaimTemplate{}; return o.template },
		"rbac.authorization.k8s.io/v1/ClusterRole":        func() any { o.role = &rbacv1.ClusterRole{}; return o.role },
		"rbac.authorization.k8s.io/v1/ClusterRoleBinding": func() any { return &rbacv1.ClusterRoleBinding{} },
		"v1/Pod": func() any { return &corev1.Pod{} },
		"networking.k8s.io/v1/NetworkPolicy": func() any {
			o.policies = append(o.policies, &networkingv1.NetworkPolicy{})
			return o.policies[len(o.policies)-1]
		},
		"monitoring.coreos.com/v1/PodMonitor": func() any { o.podMonitor = &podMonitor{}; return o.podMonitor },
	}
}

// build builds a folder with kustomize.
func build(t *testing.T, fs filesys.FileSystem, folder string) *objects {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, folder)
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{pods: map[string]podOf{}}
	makes := o.makes()
	for _, r := range built.Resources() {
		kind := strings.TrimPrefix(r.GetApiVersion()+"/"+r.GetKind(), "/")
		if makes[kind] == nil {
			t.Fatalf("%s: unknown kind %s; add it to makes", folder, kind)
		}
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object := makes[kind]()
		if err := yaml.UnmarshalStrict(text, object); err != nil {
			t.Errorf("%s: %s %s: %v", folder, kind, r.GetName(), err)
		}
		if pod, is := object.(*corev1.Pod); is {
			o.pods[pod.Name] = podOf{pod.Labels, &pod.Spec}
		}
		o.everyObject = append(o.everyObject, r.GetKind()+"/"+r.GetName())
	}
	if d := o.daemonSet; d != nil {
		o.pods[d.Name] = podOf{d.Spec.Template.Labels, &d.Spec.Template.Spec}
	}
	if d := o.deployment; d != nil {
		o.pods[d.Name] = podOf{d.Spec.Template.Labels, &d.Spec.Template.Spec}
	}
	return o
}

// folders contains the folders that users apply.
var folders = []string{"base", "overlays/loopback", "overlays/xdp", "overlays/udp", "overlays/dra", "example"}

func buildAll(t *testing.T) map[string]*objects {
	t.Helper()
	all := map[string]*objects{}
	for _, folder := range folders {
		all[folder] = build(t, filesys.MakeFsOnDisk(), folder)
	}
	return all
}

// buildComponent builds a component on top of the base.
func buildComponent(t *testing.T, component string) *objects {
	t.Helper()
	on := filesys.MakeFsInMemory()
	disk := filesys.MakeFsOnDisk()
	for _, folder := range []string{"base", component} {
		names, err := disk.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := disk.ReadFile(folder + "/" + name)
			if err == nil {
				err = on.WriteFile("/"+folder+"/"+name, text)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	text := "resources: [../base]\ncomponents: [../" + component + "]\n"
	if err := on.WriteFile("/top/kustomization.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	return build(t, on, "/top")
}
