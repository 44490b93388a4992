// Put into a page under test, before its own scripts: tells the server what went wrong and whether a graph is drawn.
(() => {
  const errors = [];
  const keep = (text) => errors.push(String(text));
  addEventListener("error", (event) => keep(event.message || `not loaded: ${event.target.src || event.target.href}`), true);
  addEventListener("unhandledrejection", (event) => keep(event.reason));
  const say = console.error;
  console.error = (...words) => { keep(words.join(" ")); say(...words); };

  // Pixels with a colour: a series is drawn in one, axes and grid are grey.
  const coloured = () => {
    let count = 0;
    for (const canvas of document.querySelectorAll("canvas")) {
      if (!canvas.width || !canvas.height || !canvas.offsetParent) continue;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue, alpha] = data.subarray(at, at + 4);
        if (alpha && Math.max(red, green, blue) - Math.min(red, green, blue) > 40) count += 1;
      }
    }
    return count;
  };
  const tell = () => fetch("/seen", {
    method: "POST",
    body: JSON.stringify({
      errors,
      coloured: coloured(),
      labels: document.querySelectorAll(".flot-tick-label, .tickLabel").length,
      text: document.body.innerText,
    }),
  });
  addEventListener("load", () => { for (let at = 1; at <= 10; at += 1) setTimeout(tell, 500 * at); });
})();
