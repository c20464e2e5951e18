//go:build !race

package labtest

// testsAProcessor is how many parallel tests run at once for each processor.
const testsAProcessor = 4
