import { ALERT_POST, type AlertChannel } from '../domain/alert.ts'
import type { AlertAddress } from '../store/alerts/alerts.ts'
import { signatureHeaders, signingKeys } from '../webhooks/posting/signature.ts'
import { type AlertMessage, fitLines, REMEDIES } from './message.ts'

/** One HTTP request that shows the message to a person. */
interface AlertRequest {
  url: string
  headers: Record<string, string>
  body: Uint8Array
}

type HttpChannel = Exclude<AlertChannel, 'email'>

interface Context {
  address: AlertAddress
  now: number
  version: string
}

/** ntfy turns a longer message into a file that has to be downloaded, and refuses one of twice this size. */
const NTFY_BYTES = 4_096
/** Discord and Telegram refuse longer messages. */
const DISCORD_CHARACTERS = 2_000
const TELEGRAM_CHARACTERS = 4_096

/** Builds the request of each channel. Sources: the "publish" page of ntfy, Slack's and Discord's incoming webhooks, `sendMessage` of Telegram's Bot API. */
export const REQUESTS: Record<HttpChannel, (message: AlertMessage, context: Context) => AlertRequest> = {
  webhook(message, { address, now, version }) {
    const { id, title, url, notices } = message
    const alerts = notices.map(({ status, alert }) => ({
      id: alert.id,
      rule: alert.rule,
      status,
      subject: alert.subject,
      instanceName: alert.instanceName,
      detail: alert.detail,
      remedy: REMEDIES[alert.rule],
      since: new Date(alert.since).toISOString(),
      endedAt: status === 'ended' && alert.endedAt !== null ? new Date(alert.endedAt).toISOString() : null,
    }))
    const body = Buffer.from(JSON.stringify({ event: ALERT_POST, title, url, alerts }))
    const keys = signingKeys({ current: address.secret ?? '', previous: [] })
    const headers = signatureHeaders({ body, keys, eventId: id, kind: ALERT_POST, attemptNumber: 1, now, version })
    return { url: address.url!, headers, body }
  },

  ntfy(message, { address }) {
    const url = new URL(address.url!)
    const [, path = '', topic = ''] = /^(.*\/)([^/]+)\/?$/.exec(url.pathname) ?? []
    const { title, isUrgent, url: click } = message
    const content = {
      topic,
      title,
      message: fitLines(message.lines, shown => Buffer.byteLength(shown.join('\n')) <= NTFY_BYTES).join('\n'),
      priority: isUrgent ? 4 : 3,
      ...(click && { click }),
    }
    const authorization = address.token && { Authorization: `Bearer ${address.token}` }
    return json(`${url.origin}${path}`, content, { ...authorization })
  },

  slack(message, { address }) {
    const text = plainText(message).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    return json(address.url!, { text })
  },

  discord(message, { address }) {
    // Without `allowed_mentions`, the name of an instance could notify everybody.
    const content = plainText(message, DISCORD_CHARACTERS)
    return json(address.url!, { content, allowed_mentions: { parse: [] } })
  },

  telegram(message, { address }) {
    const text = plainText(message, TELEGRAM_CHARACTERS)
    return json(address.url!, { chat_id: address.chatId, text, link_preview_options: { is_disabled: true } })
  },
}

/** @param maxCharacters what the channel accepts */
export function plainText({ title, lines, url }: AlertMessage, maxCharacters = Number.POSITIVE_INFINITY): string {
  const textOf = (shown: readonly string[]) => [title, ...shown, ...(url === null ? [] : [url])].join('\n')
  return textOf(fitLines(lines, shown => textOf(shown).length <= maxCharacters))
}

function json(url: string, content: object, headers: Record<string, string> = {}): AlertRequest {
  return {
    url,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: Buffer.from(JSON.stringify(content)),
  }
}
