// A server of the TypeScript SDK, version 1, over standard input and output: sessions of 2025-11-25. Its tool asks for a seat,
// then for a visit to a page, while it runs.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'v1', version: '1' });
server.registerTool('book', { description: 'Books a seat.' }, async () => {
	const seat = await server.server.elicitInput({
		mode: 'form', message: 'Which seat?', requestedSchema: {
			type: 'object', properties: { seat: { type: 'string', enum: ['window', 'aisle'] }, note: { type: 'string', default: 'none' } }, required: ['seat'],
		},
	});
	const page = await server.server.elicitInput({ mode: 'url', message: 'Pay', url: 'https://example.com/pay', elicitationId: 'pay' });
	return { content: [{ type: 'text', text: `${JSON.stringify(seat.content)} ${page.action}` }] };
});
await server.connect(new StdioServerTransport());
