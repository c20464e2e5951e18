// SPDX-License-Identifier: Apache-2.0

// Package needs skips tests whose requirements this machine does not meet: a program, a file of a package,
// root, a namespace. Each reason starts with "needs", names the missing requirement and states how to meet
// it. Tests run other programs only through this package. In CI's main run no requirement may be missing;
// hack/fresh.sh accepts no other skips.
package needs
