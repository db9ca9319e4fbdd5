// Package browser drives Debian's Chromium, for tests of pages and of the libraries that
// pages use. It is part of tests with the build tag peers alone (make check-web), so that
// nothing else links chromedp.
//
//	page := browser.Open(t, browser.Wide)
//	page.Do(chromedp.Navigate(url), chromedp.WaitVisible("#answer"))
//	page.Matches("testdata/answer.png", *rewrite)
//
// # Guarantees
//
//   - Each page has a browser and a profile of its own, in the test's temporary directory.
//     Both end with the test.
//   - The browser reaches this machine alone: no other name and no other address resolves.
//   - A test fails if its page logged an error, threw an exception that nothing caught, or
//     sent a request that failed or had an answer of 400 and above, unless the test took
//     that fault with TakeFault.
//   - Pictures have the same size on each machine: the width is given, the scale is 1, the
//     time zone is UTC, and nothing moves. Fonts are those of the page, or Debian's DejaVu.
package browser
