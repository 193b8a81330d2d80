/** Copies to the clipboard. `navigator.clipboard` exists only on https and on localhost. @throws if the browser refuses */
export async function copyText(text: string): Promise<void> {
  if ('clipboard' in navigator) return navigator.clipboard.writeText(text)
  const before = document.activeElement
  const field = document.createElement('textarea')
  field.value = text
  // Fixed, so that selecting it does not scroll the page.
  Object.assign(field.style, { position: 'fixed', opacity: '0' })
  // Inside an open dialog, which keeps the focus to itself.
  const place = before?.closest('[role="dialog"]') ?? document.body
  place.append(field)
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  if (before instanceof HTMLElement) before.focus({ preventScroll: true })
  if (!isCopied) throw new Error('The browser did not copy the text.')
}
