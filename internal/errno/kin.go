package errno

// kin is an error in words of its own that is others too, and does not repeat their words.
type kin struct {
	text string
	is   []error
}

// Kin makes an error with a text of its own that unwraps to several others, errnos among them.
func Kin(text string, is ...error) error { return &kin{text, is} }

func (k *kin) Error() string { return k.text }

// Unwrap returns the others.
func (k *kin) Unwrap() []error { return k.is }
