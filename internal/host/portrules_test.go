package host

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPortRules: what a host says counts, and what it does not say, or says wrongly, is the default.
func TestPortRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want PortRules) {
		t.Helper()
		if got := readPortRules(dir); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	expect(DefaultPortRules())
	write("ipv4/ip_local_port_range", "40000\t40009\n")
	write("ipv4/ip_unprivileged_port_start", "80\n")
	write("ipv6/bindv6only", "1\n")
	expect(PortRules{40000, 40009, 80, true})
	write("ipv4/ip_local_port_range", "9 1\n")
	write("ipv4/ip_unprivileged_port_start", "\n")
	write("ipv6/bindv6only", "0\n")
	expect(DefaultPortRules())
}
