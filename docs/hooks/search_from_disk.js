// A page that is read from a disk may start no worker. A frame stands in for the worker of the search.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      this.loaded = new Promise((resolve) => (script.onload = resolve));
      script.src = address;
      frame.contentDocument.head.append(script);
    }

    postMessage(data) {
      this.loaded.then(() =>
        this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })),
      );
    }
  };
}
