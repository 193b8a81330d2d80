import { type Static, Type } from 'typebox'
import type { ConnectionHealth } from '../../store/connections/connections.ts'
import { type ConnectionView, connectionSchema } from './connection.ts'
import { moment, nullable, toIso, toIsoOrNull } from './schema-kit.ts'

const { instanceId, state, reason, cause, since, restriction } = connectionSchema.properties

export const healthSchema = Type.Object(
  {
    instanceId,
    state,
    reason,
    cause,
    since,
    restriction,
    lastFrameAt: nullable(
      moment(
        'When WhatsApp last sent anything at all. While connected that is every half minute, and it is told as often.',
      ),
    ),
    lastAcknowledgement: nullable(
      Type.Object(
        {
          at: moment('When it came.'),
          latencyMs: Type.Integer({ description: 'How long after the message was handed to the socket.' }),
        },
        { description: 'The latest message that WhatsApp acknowledged.' },
      ),
    ),
    undecryptable: Type.Object(
      {
        count: Type.Integer({ description: 'Since the instance was created.' }),
        lastAt: nullable(moment('The last time.')),
      },
      {
        description:
          'How often an incoming message could not be decrypted. The sender is asked to send it again; ' +
          'a number that keeps growing means that this does not help.',
      },
    ),
    closes: Type.Array(
      Type.Object({
        code: Type.Integer({
          description:
            "WhatsApp's code, or the library's; negative ones are Pombal's own. docs/whatsapp-situations.md explains them.",
        }),
        count: Type.Integer({ description: 'How often within the last 24 hours.' }),
        lastAt: moment('The last time.'),
      }),
      { description: 'Why sockets to WhatsApp ended within the last 24 hours, the latest first.' },
    ),
  },
  {
    title: 'Health',
    description:
      'How the connection of an instance is doing. What was seen since the last half minute is lost when a node is killed, but no close.',
  },
)

export type HealthView = Static<typeof healthSchema>

export function healthView(connection: ConnectionView, health: ConnectionHealth): HealthView {
  const { instanceId, state, reason, cause, since, restriction } = connection
  const { acknowledgement } = health
  return {
    instanceId,
    state,
    reason,
    cause,
    since,
    restriction,
    lastFrameAt: toIsoOrNull(health.lastFrameAt),
    lastAcknowledgement: acknowledgement && {
      at: toIso(acknowledgement.at),
      latencyMs: acknowledgement.latencyMs,
    },
    undecryptable: { count: health.undecryptable, lastAt: toIsoOrNull(health.lastUndecryptableAt) },
    closes: health.closes.map(({ code, count, lastAt }) => ({ code, count, lastAt: toIso(lastAt) })),
  }
}
