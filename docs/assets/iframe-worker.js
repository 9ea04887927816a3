// A site that is opened as a file: browsers start no workers there, so the search would not work.
// A hidden frame runs the worker's script in their place. On a server this file does nothing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => {
        const event = new MessageEvent("message", {data})
        this.onmessage?.(event)
        this.dispatchEvent(event)
      }
      this.inside.importScripts = async (...urls) => {
        for (const one of urls) await this.load(one)
      }
      this.load(url).then(() => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.deliver(data))
      })
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script")
        script.src = url
        script.onload = done
        script.onerror = failed
        this.inside.document.body.append(script)
      })
    }

    deliver(data) {
      this.inside.dispatchEvent(new this.inside.MessageEvent("message", {data}))
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.deliver(data)
    }

    terminate() {
      this.inside.frameElement.remove()
    }
  }
}
