package udplink

import "testing"

// This kernel numbers packets as the package relies on it.
func TestProbe(t *testing.T) {
	trains, err := Probe()
	if err != nil || trains != nil {
		t.Fatal(trains, err)
	}
}
