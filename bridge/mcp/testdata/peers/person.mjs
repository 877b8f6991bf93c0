// What the person of the tests answers, by the beginning of what is asked.
const answers = [
	['Deploy api', { decision: 'allow_once' }],
	['Go on?', { decision: 'allow_once' }],
	['every_kind asks', { choice: '1' }],
	['two_at_once asks', { choice: '0' }],
	['Who?', { name: 'Ann', sure: false, count: 3, tags: ['a', 'c'] }],
	['Why?', { why: 'so so' }],
	['rounds asks', { choice: '0' }],
];

export function answer(params) {
	if (params.message.startsWith('Deploy no')) return { action: 'decline' };
	if (params.mode === 'url') return { action: 'accept' };
	const found = answers.find(([begin]) => params.message.startsWith(begin));
	if (!found) throw new Error(`nobody knows ${params.message}`);
	return { action: 'accept', content: found[1] };
}

// The calls that come in on the command line as JSON, [[tool, arguments], …]; their results go out, one a line.
export async function call(client) {
	await client.listTools();
	for (const [name, args] of JSON.parse(process.argv[4])) {
		let line;
		try {
			const result = await client.callTool({ name, arguments: args });
			line = { text: result.content[0]?.text, isError: !!result.isError, code: result.structuredContent?.code };
		} catch (e) {
			line = { number: e.code, data: e.data };
		}
		console.log(JSON.stringify(line));
	}
	await client.close();
}
