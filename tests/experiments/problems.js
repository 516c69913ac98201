(async () => {
  const problems = [];
  for (const details of document.querySelectorAll("details")) details.open = true;
  const named = (element) => {
    const text = element.getAttribute("aria-labelledby") ?? element.id ?? "";
    return `${element.tagName.toLowerCase()} ${text} ${element.textContent.trim().slice(0, 40)}`;
  };
  // half a pixel is how browsers round
  const outside = (inner, outer) =>
    inner.left < outer.left - 0.5 || inner.right > outer.right + 0.5 ||
    inner.top < outer.top - 0.5 || inner.bottom > outer.bottom + 0.5;
  const box = (element) => element.getBoundingClientRect();

  for (const image of document.querySelectorAll("img, image")) {
    let loaded = image;
    if (image.tagName === "image") {
      // an image within a drawing tells nothing of itself: the same address as an <img> does
      loaded = new Image();
      loaded.src = image.href.baseVal;
    }
    await loaded.decode().catch(() => problems.push(`not loaded: ${named(image)}`));
    if (!loaded.naturalWidth) problems.push(`no natural width: ${named(image)}`);
  }

  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) problems.push(`page ${page.scrollWidth} wide, window ${innerWidth}`);
  for (const drawing of document.querySelectorAll("svg, canvas")) {
    const frame = box(drawing);
    if (!frame.width || !frame.height) problems.push(`empty: ${named(drawing)}`);
    if (frame.left < 0 || frame.right > innerWidth) problems.push(`beyond the window: ${named(drawing)}`);
    if (outside(frame, box(drawing.parentElement))) problems.push(`beyond its frame: ${named(drawing)}`);
    for (const part of drawing.querySelectorAll("text, image")) {
      const extent = box(part);
      if (extent.width && outside(extent, frame)) problems.push(`clipped: ${part.id || part.textContent} of ${named(drawing)}`);
    }
  }
  for (const legend of document.querySelectorAll(".legend, .legend *, figcaption")) {
    const extent = box(legend);
    if (extent.left < 0 || extent.right > innerWidth) problems.push(`beyond the window: ${named(legend)}`);
    if (outside(extent, box(legend.parentElement))) problems.push(`beyond its parent: ${named(legend)}`);
  }
  return problems;
})()
