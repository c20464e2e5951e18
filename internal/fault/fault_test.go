// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"
)

func TestContain(t *testing.T) {
	if f := Contain(func() {}); f != nil {
		t.Errorf("got a fault without a panic: %v", f)
	}
	f := Contain(func() { panic("a bug") })
	if f == nil || f.Cause != "a bug" || !strings.Contains(f.Error(), "a bug") || !strings.Contains(string(f.Stack), "TestContain") {
		t.Errorf("%+v", f)
	}
}
