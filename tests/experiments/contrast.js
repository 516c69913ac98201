// Texts of the page that do not stand out from what is behind them: 4.5 : 1, large ones 3 : 1.
(() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.canvas.width = canvas.canvas.height = 1;
  // a colour as the screen has it, whatever the notation, over an opaque one
  const over = (colour, [r, g, b]) => {
    canvas.fillStyle = `rgb(${r} ${g} ${b})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb
    .map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    if (!grounds.has(element)) {
      grounds.set(element, over(getComputedStyle(element).backgroundColor, ground(element.parentElement)));
    }
    return grounds.get(element);
  };
  const problems = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest("svg, script, style, noscript, option, .meaning, .skip")) continue;
    const css = getComputedStyle(element);
    if (css.visibility === "hidden" || !element.getClientRects().length || element.closest(":disabled")) continue;
    const behind = ground(element);
    const [a, b] = [light(over(css.color, behind)), light(behind)].sort((x, y) => y - x);
    const size = parseFloat(css.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(css.fontWeight) >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) problems.add(`${element.tagName.toLowerCase()}.${element.className}: ${ratio.toFixed(1)} : 1`);
  }
  return [...problems];
})()
