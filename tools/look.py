#!/usr/bin/env python3
"""look.py BROWSER PAGE FOLDER: what tools/look.sh does with Chromium, over its DevTools protocol on a pipe."""

import base64
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

WIDTHS = (390, 820, 1400)
SCHEMES = ("light", "dark")
MAX_HEIGHT = 9000  # of a picture, in pixels: a page of 1,000 runs is cut
TIMEOUT = 60       # seconds for an answer


class Browser:
    """Chromium with one page. What it reports of the page is in `requests` and `complaints`."""

    def __init__(self, program, profile):
        from_here, to_browser = os.pipe()
        from_browser, to_here = os.pipe()
        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run",
                 "--disable-gpu", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # Chromium refuses to start as root with it

        def connect():  # the protocol is on descriptors 3 and 4; the pipes may have these numbers themselves
            high = [os.dup2(end, number, inheritable=True) for end, number in ((from_here, 30), (to_here, 31))]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen([program, *flags, "about:blank"], preexec_fn=connect, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(from_here)
        os.close(to_here)
        self.output, self.input = to_browser, from_browser
        self.buffer, self.number, self.session = b"", 0, None
        self.requests, self.complaints, self.events = [], [], set()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            part = os.read(self.input, 1 << 20)
            if not part:
                sys.exit("look: Chromium ended; does it start by hand with --headless=new?")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, method, event):
        self.events.add(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(part.get("value", part.get("description"))) for part in event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")
        elif method == "Audits.issueAdded" and event["issue"]["code"] == "ContentSecurityPolicyIssue":
            details = event["issue"]["details"]["contentSecurityPolicyIssueDetails"]
            self.complaints.append(f"policy: {details['violatedDirective']} {details.get('blockedURL', '')}")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"look: {method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.note(answer["method"], answer["params"])

    def wait(self, event):
        deadline = time.monotonic() + TIMEOUT
        while event not in self.events:
            answer = self.receive(deadline)
            self.note(answer.get("method"), answer.get("params"))

    def value(self, expression):
        """The value of an expression of JavaScript in the page, when a promise is kept."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(f"look: {expression}: {answer['exceptionDetails']['exception']['description']}")
        return answer["result"].get("value")

    def wait_for_frames(self):
        """Waits until the page has drawn twice: observers of its size and place have been called by then."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
                   "() => setTimeout(done, 100))))")

    def open(self, url):
        self.events.discard("Page.loadEventFired")
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")
        self.wait_for_frames()

    def picture(self, file, height=None):
        clip = {"x": 0, "y": 0, "width": self.value("innerWidth"), "height": height, "scale": 1}
        parameters = {"captureBeyondViewport": True, "clip": clip} if height else {}
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **parameters)["data"]))


def views(browser):
    """Sets each width and scheme. Yields its name."""
    for width in WIDTHS:
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                     mobile=width < 600)
        for scheme in SCHEMES:
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.call("Page.navigate", url="about:blank")  # else only the hash would change
            yield f"{width}-{scheme}"


def whole_picture(browser, name, folder):
    """Takes a picture of the whole page. Yields what is wrong with its width."""
    width = int(name.partition("-")[0])
    tall, broad = browser.value("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]")
    browser.picture(folder / f"{name}.png", min(MAX_HEIGHT, tall))
    if broad > width:
        yield f"at {name} the page is {broad - width} pixels wider than its window"


def first_paint(browser):
    return browser.value("performance.getEntriesByName('first-contentful-paint')[0].startTime")


def look_at_server(browser, address, folder):
    """As look(), of the pages of `tearless serve`: the first one, and those of its first sweep and first run."""
    faults, paints = [], []
    browser.open(address)  # the token becomes a cookie
    first = address.partition("?")[0]
    for name in views(browser):
        browser.open(first)
        for page, link in {"sweeps": "", "sweep": "a[href^='/sweep/']", "run": "a[href^='/run/']", "log": "a[href^='/log']"}.items():
            if link:
                target = browser.value(f"document.querySelector(\"{link}\")?.href")
                if not target:
                    faults += [f"at {name} no link leads to a {page}"] if page != "log" else []  # the run has not begun
                    break
                browser.open(target)
            paints.append(first_paint(browser))
            browser.value("new Promise(done => setTimeout(done, 1000))")  # curves come by themselves
            faults += whole_picture(browser, f"{name}-{page}", folder)
            places, drawn = browser.value("[document.querySelectorAll('.live-curves').length, document.querySelectorAll('.live-curves .chart path').length]")
            if places and not drawn:
                faults.append(f"at {name}-{page} no curve is drawn")
    return faults, paints


def look(browser, url, folder):
    """Takes the pictures. Returns what is wrong beside what the browser complains of, and the times of first paint."""
    faults, paints = [], []
    for name in views(browser):
        browser.open(url)
        paints.append(first_paint(browser))
        browser.value("document.querySelector('#curves')?.scrollIntoView()")
        browser.wait_for_frames()
        browser.picture(folder / f"{name}-curves.png")
        browser.value("scrollTo(0, 0)")
        browser.wait_for_frames()
        faults += whole_picture(browser, name, folder)
        for kind in ("cell", "run"):
            if not browser.value(f"!!document.querySelector('button.{kind}')"):
                continue
            browser.value(f"document.querySelector('button.{kind}').click()")
            browser.wait_for_frames()
            browser.picture(folder / f"{name}-{kind}.png")
            if not browser.value("!!document.querySelector('#detail[open]')"):
                faults.append(f"at {name} a click on the first {kind} opens nothing")
            browser.value("document.querySelector('#detail').close()")
            browser.wait_for_frames()
            if browser.value("location.hash"):
                faults.append(f"at {name} the address of the first {kind} stays when it is closed")
    pdf = browser.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"]
    (folder / "report.pdf").write_bytes(base64.b64decode(pdf))
    browser.wait_for_frames()
    return faults, paints


def main(program, page, folder):
    is_served = page.startswith("http://")
    url = page if is_served else pathlib.Path(page).resolve().as_uri()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            faults, paints = (look_at_server if is_served else look)(browser, url, pathlib.Path(folder))
        except TimeoutError:
            sys.exit(f"look: Chromium did not answer within {TIMEOUT} s")
        finally:
            browser.process.kill()
            browser.process.wait()
    own = (url.partition("?")[0], "data:", "about:")
    others = sorted({request for request in browser.requests if not request.startswith(own)})
    faults += [f"the page asks for {request}" for request in others] + list(dict.fromkeys(browser.complaints))
    for fault in faults:
        print(f"look: {fault}")
    print(f"look: first paint after {min(paints):.0f} to {max(paints):.0f} ms; {len(others)} requests, "
          f"{len(faults)} faults in {len(paints)} views")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
