// Package need says what a test needs from the machine. Without it the test skips with the reason;
// if the environment variable WHYSTALL_REQUIRE lists it, the test fails instead, so that CI
// cannot go green by skipping.
//
// WHYSTALL_REQUIRE is names separated by commas: those given to the functions here, or "all".
package need
