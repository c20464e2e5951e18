// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/roced/roced/deploy/kubernetes/internal/container"
	"github.com/roced/roced/deploy/kubernetes/internal/dra"
	"github.com/roced/roced/deploy/kubernetes/internal/rig"
)

var programs string

func TestMain(m *testing.M) { rig.Main(m, &programs, "roced-device-plugin", "roced-dra") }

// images contains the allowed images: that of "make image-kubernetes", and the users' image.
var images = []string{"localhost/roced-kubernetes:latest", "localhost/perftest:latest"}

func containersOf(p *corev1.PodSpec) []corev1.Container {
	return slices.Concat(p.InitContainers, p.Containers)
}

// TestImages checks that the image contains the commands that containers run.
func TestImages(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	for folder, o := range buildAll(t) {
		for name, pod := range o.pods {
			for _, c := range containersOf(pod.spec) {
				if !slices.Contains(images, c.Image) {
					t.Errorf("%s: %s: image %s", folder, name, c.Image)
				}
				if c.ImagePullPolicy != corev1.PullIfNotPresent { // otherwise "latest" is pulled each time, and no registry has these images
					t.Errorf("%s: %s: pulls %s: %s", folder, name, c.Image, c.ImagePullPolicy)
				}
				program := filepath.Base(c.Command[0])
				if c.Image == images[0] && program != "roced" && !strings.Contains(string(file), program) {
					t.Errorf("%s: %s: the image has no %s", folder, name, program)
				}
			}
		}
	}
}

// TestCommands checks that the programs accept all flags of containers and probes, and the configuration.
func TestCommands(t *testing.T) {
	t.Parallel()
	for folder, o := range buildAll(t) {
		for name, pod := range o.pods {
			for _, c := range containersOf(pod.spec) {
				checkCommand(t, folder+": "+name, slices.Concat(c.Command, c.Args))
				for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
					if probe != nil {
						checkCommand(t, folder+": "+name+": probe", probe.Exec.Command)
					}
				}
			}
		}
		if o.configMap != nil {
			checkConfiguration(t, o.configMap.Data["roced.toml"])
		}
	}
}

func checkCommand(t *testing.T, where string, command []string) {
	t.Helper()
	var cmd *exec.Cmd
	switch program := filepath.Base(command[0]); program {
	case "roced":
		cmd = exec.Command(filepath.Join(programs, program), append(command[1:], "--help")...)
	case "roced-device-plugin", "roced-dra":
		if last := command[len(command)-1]; last == "check" || len(command) == 3 && command[1] == "install" {
			return // TestPluginIsKilled, TestInstall
		}
		cmd = exec.Command(filepath.Join(programs, program), append(command[1:], "-h")...)
	case "sleep":
		return
	default:
		t.Errorf("%s: unknown program %s", where, program)
		return
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %q: %v: %s", where, command, err, out)
	}
}

func checkConfiguration(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "roced.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(programs, "roced"), "config", "check", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestProbes checks that the probes succeed while the service responds, and fail otherwise.
func TestProbes(t *testing.T) {
	t.Parallel()
	service := rig.Start(t, filepath.Join(programs, "roced"))
	probe := func() error {
		p := build(t, filesys.MakeFsOnDisk(), "base").pods["roced"].spec.Containers[0].LivenessProbe.Exec.Command
		for i := range p {
			p[i] = strings.Replace(p[i], "/run/roced/roced.sock", service.Path, 1)
		}
		return exec.Command(filepath.Join(programs, "roced"), p[1:]...).Run()
	}
	if err := probe(); err != nil {
		t.Error(err)
	}
	service.Kill()
	if err := probe(); err == nil {
		t.Error("the probe succeeds without a service")
	}
}

// TestMounts checks that each mount refers to a volume, and that host folders are mounted at the same path.
func TestMounts(t *testing.T) {
	t.Parallel()
	for folder, o := range buildAll(t) {
		for name, pod := range o.pods {
			volumes := map[string]corev1.Volume{}
			for _, v := range pod.spec.Volumes {
				volumes[v.Name] = v
			}
			for _, c := range containersOf(pod.spec) {
				for _, m := range c.VolumeMounts {
					v, is := volumes[m.Name]
					if !is {
						t.Errorf("%s: %s: no volume %s", folder, name, m.Name)
					}
					if v.HostPath != nil && v.HostPath.Path != m.MountPath { // containers pass their paths to the kubelet
						t.Errorf("%s: %s: %s is mounted at %s", folder, name, v.HostPath.Path, m.MountPath)
					}
					if v.ConfigMap != nil && (o.configMap == nil || v.ConfigMap.Name != o.configMap.Name) {
						t.Errorf("%s: %s: no ConfigMap %s", folder, name, v.ConfigMap.Name)
					}
				}
			}
		}
	}
}

// TestRights checks the privileges of each overlay. The plugin has none.
func TestRights(t *testing.T) {
	t.Parallel()
	all := buildAll(t)
	xdp := []corev1.Capability{"BPF", "IPC_LOCK", "NET_ADMIN", "NET_RAW", "PERFMON", "SYS_ADMIN"}
	for folder, o := range all {
		for name, pod := range o.pods {
			if folder == "example" {
				continue // the users' own
			}
			p := pod.spec
			if p.HostNetwork || p.HostIPC || p.HostPID != (folder == "overlays/xdp") || *p.AutomountServiceAccountToken {
				t.Errorf("%s: %s has a namespace of the host or a token", folder, name)
			}
			for _, c := range containersOf(p) {
				s := c.SecurityContext
				if s.Privileged != nil || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || !*s.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s: %s: %v", folder, name, c.Name, s)
				}
				var want []corev1.Capability
				if folder == "overlays/xdp" && c.Name == "service" {
					want = xdp
				}
				if got := slices.Sorted(slices.Values(s.Capabilities.Add)); !slices.Equal(got, want) {
					t.Errorf("%s: %s: %s adds %v, want %v", folder, name, c.Name, got, want)
				}
			}
		}
	}
	udp := all["overlays/udp"].pods["perftest"].spec
	if !*udp.SecurityContext.RunAsNonRoot || udp.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("a sidecar has privileges: %v", udp.SecurityContext)
	}
	for _, v := range udp.Volumes {
		if v.EmptyDir == nil {
			t.Errorf("a sidecar mounts a folder of the host: %v", v)
		}
	}
}

// TestNetworkPolicies checks that the policies allow RoCEv2 to the pods of the examples, and Prometheus to the service.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	for folder, o := range buildAll(t) {
		for _, policy := range o.policies {
			chosen, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
			if err != nil {
				t.Fatal(err)
			}
			var ports []string
			for _, p := range policy.Spec.Ingress[0].Ports {
				ports = append(ports, string(*p.Protocol)+" "+p.Port.String())
			}
			want := []string{"UDP 4791", "TCP 18515"}
			if policy.Name == "roced" {
				want = []string{"TCP metrics"}
			}
			if !slices.Equal(ports, want) {
				t.Errorf("%s: %s allows %q, want %q", folder, policy.Name, ports, want)
			}
			for name, pod := range o.pods {
				if !chosen.Matches(labels.Set(pod.labels)) {
					t.Errorf("%s: %s does not apply to %s", folder, policy.Name, name)
				}
			}
		}
		if len(o.policies) != 1 {
			t.Errorf("%s: %d policies", folder, len(o.policies))
		}
	}
}

// TestPodMonitor checks that the PodMonitor selects the pods and their port.
func TestPodMonitor(t *testing.T) {
	t.Parallel()
	o := buildComponent(t, "components/podmonitor")
	if o.podMonitor == nil {
		t.Fatalf("no such object in %q", o.everyObject)
	}
	chosen, err := metav1.LabelSelectorAsSelector(&o.podMonitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	pod := o.pods["roced"]
	port := pod.spec.Containers[0].Ports[0].Name
	if endpoint := o.podMonitor.Spec.PodMetricsEndpoints[0]; !chosen.Matches(labels.Set(pod.labels)) || endpoint.Port != port || endpoint.Path != "/metrics" ||
		o.podMonitor.Namespace != o.daemonSet.Namespace {
		t.Errorf("%+v", o.podMonitor)
	}
}

// TestClaims checks that the example's claim refers to the class, the class to the driver, and that only the driver has
// a token, with minimal permissions.
func TestClaims(t *testing.T) {
	t.Parallel()
	o := build(t, filesys.MakeFsOnDisk(), "overlays/dra")
	if o.class.Spec.Selectors[0].CEL.Expression != fmt.Sprintf("device.driver == %q", dra.Name) {
		t.Errorf("class %v", o.class.Spec)
	}
	for _, rule := range o.role.Rules {
		if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, "secrets") {
			t.Errorf("%v", rule)
		}
	}
	for _, c := range o.pods["roced"].spec.Containers {
		has := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "token" })
		if has != (c.Name == "dra") || c.Name == "device-plugin" {
			t.Errorf("container %s, with a token: %v", c.Name, has)
		}
	}
	text, err := os.ReadFile("example/claim.yaml")
	if err != nil {
		t.Fatal(err)
	}
	memory := filesys.MakeFsInMemory()
	_ = memory.WriteFile("/claim.yaml", text)
	_ = memory.WriteFile("/kustomization.yaml", []byte("resources: [claim.yaml]\n"))
	example := build(t, memory, "/")
	pod := example.pods["perftest-claim"].spec
	request := example.template.Spec.Spec.Devices.Requests[0]
	if *pod.ResourceClaims[0].ResourceClaimTemplateName != example.template.Name || pod.Containers[0].Resources.Claims[0].Name != pod.ResourceClaims[0].Name ||
		request.Exactly.DeviceClassName != o.class.Name {
		t.Errorf("%v, %v", pod, request)
	}
}

// TestResource checks that the examples request the plugin's resource, and that the sidecar sets the same environment
// as the plugin.
func TestResource(t *testing.T) {
	t.Parallel()
	all := buildAll(t)
	if len(all["example"].pods) != 2 {
		t.Errorf("pods %v", all["example"].everyObject)
	}
	for name, pod := range all["example"].pods {
		if one := pod.spec.Containers[0].Resources.Limits[container.Kind]; one.Value() != 1 {
			t.Errorf("%s requests %v", name, pod.spec.Containers[0].Resources.Limits)
		}
	}
	got := map[string]string{}
	for _, e := range all["overlays/udp"].pods["perftest"].spec.Containers[0].Env {
		got[e.Name] = e.Value
	}
	if !maps.Equal(got, container.Env()) {
		t.Errorf("the sidecar's environment: %v", got)
	}
}
