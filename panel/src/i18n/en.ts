import * as alerts from './en/alerts.ts'
import * as connection from './en/connection.ts'
import * as endpoints from './en/endpoints.ts'
import * as events from './en/events.ts'
import * as files from './en/files.ts'
import * as frame from './en/frame.ts'
import * as guides from './en/guides.ts'
import * as inbox from './en/inbox.ts'
import * as instances from './en/instances.ts'
import * as links from './en/links.ts'
import * as messages from './en/messages.ts'
import * as people from './en/people.ts'
import * as problems from './en/problems.ts'
import * as tools from './en/tools.ts'
import * as webhook from './en/webhook.ts'

/** Every text of the panel, by subject. The compiler checks that every other language has the same shape. */
export const en = {
  ...alerts,
  ...connection,
  ...endpoints,
  ...events,
  ...files,
  ...frame,
  ...guides,
  ...inbox,
  ...instances,
  ...links,
  ...messages,
  ...people,
  ...problems,
  ...tools,
  ...webhook,
}

export type Words = typeof en
