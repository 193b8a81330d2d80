import { type Static, Type } from 'typebox'
import { ALERT_CHANNELS, ALERT_RULES, type AlertDelays, MAX_ALERT_DELAY_MINUTES } from '../../domain/alert.ts'
import type { AlertTarget, ListedAlert } from '../../store/alerts/alerts.ts'
import { MAX_URL_LENGTH } from './events/webhook.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from './schema-kit.ts'

const MAX_ADDRESS_LENGTH = 320

export const alertRuleSchema = oneOf(ALERT_RULES, {
  description:
    '`number_down`: a linked number is not connected; `linking_lost`: WhatsApp or the phone logged one out; ' +
    '`webhook_failing`: events are retried, or the last one is exhausted; `events_given_up`: events of the last 7 ' +
    'days are exhausted and were not redelivered; `disk_nearly_full`: less than 10 % and less than 2 GiB are left.',
})

export const alertSchema = Type.Object(
  {
    id: Type.String({ description: 'The alert.', examples: ['alt_01kd3f7m2ne4v5w6x7y8z9abcd'] }),
    rule: alertRuleSchema,
    subject: Type.String({
      description: 'The instance, the operator endpoint, or the host name of the node with the disk.',
    }),
    instanceName: nullable(Type.String({ description: 'Null for a node, and after the instance was deleted.' })),
    detail: Type.String({ description: 'A sentence for people.' }),
    since: moment('When the problem began.'),
    beganAt: moment('When the problem was announced.'),
    endedAt: nullable(moment('When the problem ended; null while it lasts.')),
  },
  { title: 'Alert', description: 'A problem that was announced.' },
)

export type AlertView = Static<typeof alertSchema>

export function alertView(alert: ListedAlert): AlertView {
  const { id, rule, subject, instanceName, detail, since, beganAt, endedAt } = alert
  const began = toIso(beganAt ?? since)
  return { id, rule, subject, instanceName, detail, since: toIso(since), beganAt: began, endedAt: toIsoOrNull(endedAt) }
}

export const alertDelaySchema = Type.Object(
  {
    rule: alertRuleSchema,
    afterMinutes: nullable(
      Type.Integer({
        minimum: 0,
        maximum: MAX_ALERT_DELAY_MINUTES,
        description: 'How long the problem must last before it is announced; null: it is never announced.',
      }),
    ),
  },
  { title: 'AlertRule' },
)

export type AlertRuleView = Static<typeof alertDelaySchema>

export function alertRuleViews(delays: AlertDelays): AlertRuleView[] {
  return ALERT_RULES.map(rule => ({ rule, afterMinutes: delays[rule] }))
}

export const newAlertTargetSchema = Type.Object(
  {
    name: Type.String({ description: '1 to 100 characters.', examples: ['Night shift'] }),
    channel: oneOf(ALERT_CHANNELS),
    url: Type.Optional(
      Type.String({
        maxLength: MAX_URL_LENGTH,
        description:
          "Where to post: your program's URL (`webhook`), the topic (`ntfy`), the incoming webhook (`slack`, " +
          '`discord`), or `https://api.telegram.org/bot<token>/sendMessage` (`telegram`). Not for `email`.',
        examples: ['https://ntfy.sh/my-secret-topic'],
      }),
    ),
    token: Type.Optional(
      Type.String({ minLength: 1, maxLength: 512, description: '`ntfy`: an access token, if the topic needs one.' }),
    ),
    chatId: Type.Optional(
      Type.String({ pattern: '^(-?[0-9]{1,20}|@[A-Za-z0-9_]{1,64})$', description: '`telegram`: the chat.' }),
    ),
    to: Type.Optional(
      Type.String({
        maxLength: MAX_ADDRESS_LENGTH,
        pattern: '^[^\\s@<>,;]+@[^\\s@<>,;]+$',
        description: '`email`: the address. `SMTP_URL` must be set.',
      }),
    ),
  },
  { title: 'NewAlertTarget' },
)

export type NewAlertTargetBody = Static<typeof newAlertTargetSchema>

export const alertTargetSchema = Type.Object(
  {
    id: Type.String({ description: 'The target.', examples: ['tgt_4f9k2m7q1x0z'] }),
    name: Type.String(),
    channel: oneOf(ALERT_CHANNELS),
    address: Type.String({
      description: 'Where messages go. Only the host of a URL, because the rest may be a secret.',
      examples: ['ntfy.sh'],
    }),
    createdAt: moment('When it was added.'),
    lastSentAt: nullable(moment('When the target last accepted a message; null if it never has.')),
    failures: Type.Integer({
      description: 'Failed attempts since `lastSentAt`. Pombal keeps trying, with pauses of up to half an hour.',
    }),
    lastError: nullable(Type.String({ description: 'Why the last attempt failed; null if it succeeded.' })),
  },
  { title: 'AlertTarget', description: 'A person or program that alerts are sent to.' },
)

export type AlertTargetView = Static<typeof alertTargetSchema>

export function alertTargetView(target: AlertTarget): AlertTargetView {
  const { id, name, channel, address, createdAt, lastSentAt, failures, lastError } = target
  const shown = address.to ?? new URL(address.url!).host
  return {
    id,
    name,
    channel,
    address: shown,
    createdAt: toIso(createdAt),
    lastSentAt: toIsoOrNull(lastSentAt),
    failures,
    lastError,
  }
}

export const createdAlertTargetSchema = Type.Object(
  {
    target: alertTargetSchema,
    secret: nullable(
      Type.String({
        description: 'Signs the posts to a `webhook`, as for events. Shown only once; null for other channels.',
      }),
    ),
  },
  { title: 'CreatedAlertTarget' },
)

export type CreatedAlertTargetView = Static<typeof createdAlertTargetSchema>

export const alertTargetParams = Type.Object({ id: Type.String({ description: 'The target.' }) })
