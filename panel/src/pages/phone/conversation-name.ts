import type { Conversation } from '../../api/types.ts'
import type { Words } from '../../i18n/en.ts'

export function conversationName({ with: address, name }: Conversation, words: Words): string {
  return name ?? (address.endsWith('@g.us') ? `${words.messages.group} ${address.replace('@g.us', '')}` : `+${address}`)
}
