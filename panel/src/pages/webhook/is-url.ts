/** A quick check. The service validates the URL. */
export function isUrl(text: string): boolean {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  return url !== null && url.hostname !== '' && url.username === ''
}
