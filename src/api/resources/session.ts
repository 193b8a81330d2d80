import { type Static, Type } from 'typebox'
import type { PanelSession } from '../../store/sessions/sessions.ts'
import { moment, nullable, toIso } from './schema-kit.ts'

const sessionIdSchema = Type.String({ description: 'The session.', examples: ['ses_4f9k2m7q1x0zb8d3'] })

export const sessionParams = Type.Object({ id: sessionIdSchema })

export const sessionSchema = Type.Object(
  {
    id: nullable(sessionIdSchema),
    passwordSet: Type.Boolean({ description: 'Whether a password can be used to sign in, beside the admin key.' }),
    sandbox: Type.Boolean({ description: 'Whether sandbox instances can be made.' }),
    version: Type.String({ description: 'Of Pombal.' }),
  },
  { title: 'Session', description: "Who is asking: a session of the panel, or (id null) the admin key's bearer." },
)

export type SessionView = Static<typeof sessionSchema>

export const listedSessionSchema = Type.Object(
  {
    id: sessionIdSchema,
    createdAt: moment('When somebody signed in.'),
    expiresAt: moment('When it ends by itself.'),
    userAgent: nullable(Type.String({ description: 'What the browser calls itself.' })),
    current: Type.Boolean({ description: 'Whether it is the one that asks.' }),
  },
  { title: 'ListedSession' },
)

export type ListedSessionView = Static<typeof listedSessionSchema>

export function listedSessionView(session: PanelSession, currentId: string): ListedSessionView {
  const { id, createdAt, expiresAt, userAgent } = session
  return { id, createdAt: toIso(createdAt), expiresAt: toIso(expiresAt), userAgent, current: id === currentId }
}
