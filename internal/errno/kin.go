// SPDX-License-Identifier: Apache-2.0

package errno

// kin is an error with its own text that matches several other errors.
type kin struct {
	text string
	is   []error
}

// Kin returns an error with its own text that unwraps to several others, including errnos.
func Kin(text string, is ...error) error { return &kin{text, is} }

func (k *kin) Error() string { return k.text }

// Unwrap returns the other errors.
func (k *kin) Unwrap() []error { return k.is }
