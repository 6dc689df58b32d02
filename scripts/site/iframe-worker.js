// The search of a page that is opened from a file: browsers start no worker there, so its script runs in a frame of the page instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise(loaded => {
        const script = inside.document.createElement("script");
        script.src = new URL(address, location.href);
        script.onload = () => loaded(inside);
        inside.document.head.append(script);
      });
    }
    postMessage(data) {
      this.ready.then(inside => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
