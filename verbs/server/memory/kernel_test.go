// SPDX-License-Identifier: Apache-2.0

package memory

import "testing"

// TestCheckKernel: the service runs on the kernels that roced supports.
func TestCheckKernel(t *testing.T) {
	if err := CheckKernel(); err != nil {
		t.Error(err)
	}
}
