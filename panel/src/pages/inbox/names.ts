import type { InboxChat } from '../../api/types.ts'
import { recipientText } from '../../components/recipients/recipient.tsx'
import type { Words } from '../../i18n/en.ts'

export type Named = Pick<InboxChat, 'chat' | 'name' | 'username'>

export function chatName({ chat, name, username }: Named, words: Words): string {
  return name ?? username ?? recipientText(chat, words)
}

/** The text beside a chat's name. */
export function initialOf({ chat, name }: Named): string {
  return name ? [...name][0]! : chat.replace(/@.*/, '').slice(-2)
}
