import { type Static, Type } from 'typebox'
import type { ConnectionHealth } from '../../store/connections/connections.ts'
import { type ConnectionView, connectionSchema } from './connection.ts'
import { moment, nullable, toIso, toIsoOrNull } from './schema-kit.ts'

const { instanceId, state, reason, cause, since, restriction, proxy } = connectionSchema.properties

export const healthSchema = Type.Object(
  {
    instanceId,
    state,
    reason,
    cause,
    since,
    restriction,
    proxy,
    lastFrameAt: nullable(
      moment('When WhatsApp last sent anything. While connected, that is at least every 30 s. Updated every 30 s.'),
    ),
    lastAcknowledgement: nullable(
      Type.Object(
        {
          at: moment('When the acknowledgement arrived.'),
          latencyMs: Type.Integer({ description: 'Milliseconds since the message was written to the socket.' }),
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
          'How often an incoming message could not be decrypted. Its sender is asked to send it again. If the count ' +
          'keeps growing, asking again does not help.',
      },
    ),
    closes: Type.Array(
      Type.Object({
        code: Type.Integer({
          description:
            "WhatsApp's code, or the library's; negative ones are Pombal's own. docs/whatsapp-situations.md explains " +
            'them.',
        }),
        count: Type.Integer({ description: 'How often within the last 24 hours.' }),
        lastAt: moment('The last time.'),
      }),
      { description: 'Why sockets to WhatsApp ended within the last 24 hours, the latest first.' },
    ),
  },
  {
    title: 'Health',
    description: 'The health of a connection. If a node is killed, the last 30 s may be missing, except in `closes`.',
  },
)

export type HealthView = Static<typeof healthSchema>

export function healthView(connection: ConnectionView, health: ConnectionHealth): HealthView {
  const { instanceId, state, reason, cause, since, restriction, proxy } = connection
  const { acknowledgement } = health
  return {
    instanceId,
    state,
    reason,
    cause,
    since,
    restriction,
    proxy,
    lastFrameAt: toIsoOrNull(health.lastFrameAt),
    lastAcknowledgement: acknowledgement && {
      at: toIso(acknowledgement.at),
      latencyMs: acknowledgement.latencyMs,
    },
    undecryptable: { count: health.undecryptable, lastAt: toIsoOrNull(health.lastUndecryptableAt) },
    closes: health.closes.map(({ code, count, lastAt }) => ({ code, count, lastAt: toIso(lastAt) })),
  }
}
