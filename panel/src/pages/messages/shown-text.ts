import type { Message } from '../../api/types.ts'

/** A text, or the name of a file and its caption. */
export function shownText({ text, media }: Pick<Message, 'text' | 'media'>): string {
  return media === undefined ? text : `📎 ${media.filename ?? media.id} ${text}`.trimEnd()
}
